import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { suite, test } from "node:test";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { UdpPeer } from "../../helpers/udp-peer.ts";

suite("records of what is not a request", () => {
  test("a request that the parser rejects leaves a record with the error", async () => {
    await using gateway = await LocalGateway.start({
      binds: [{ port: 0, listeners: [{ routes: [{ name: "r", backends: [{ host: "127.0.0.1:1" }] }] }] }],
    });
    const socket = connect(gateway.port(), "127.0.0.1");
    socket.end("GET /secret-path HTTP/9.9\r\nhost: a\r\n\r\n");
    await once(socket.resume(), "close");
    await gateway.until(() => gateway.records.length === 1, "the record");
    const [record] = gateway.records;
    assert.deepEqual(
      { kind: record?.kind, status: record?.status, error: record?.error, kept: record?.kept, path: record?.path },
      { kind: "unreadable", status: 505, error: "TG_HTTP_VERSION", kept: true, path: "" },
    );
  });

  test("a TCP connection leaves a record when it is over, and one that may not connect says why", async () => {
    const backend = createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
    await once(backend, "listening");
    const tcpRoutes = [{ name: "echo", backends: [{ host: `127.0.0.1:${(backend.address() as AddressInfo).port}` }] }];
    const config = { binds: [{ port: 0, listeners: [{ name: "tcp", protocol: "TCP", tcpRoutes }] }] };
    await using gateway = await LocalGateway.start(config);
    const socket = connect(gateway.port(), "127.0.0.1");
    socket.write("hello");
    await once(socket, "data");
    socket.end();
    await once(socket.resume(), "close");
    await gateway.until(() => gateway.records.length === 1, "the record");
    const [record] = gateway.records;
    assert.deepEqual(
      [record?.kind, record?.version, record?.received, record?.sent, record?.route, record?.listener, record?.reason],
      ["connection", "tcp", 5, 5, "default/echo", "tcp", "Upstream"],
    );
    const networkAuthorization = { rules: [{ deny: "true" }] };
    await gateway.reconfigure({ ...config, frontendPolicies: { networkAuthorization } });
    const denied = connect(gateway.port(), "127.0.0.1");
    denied.on("error", () => {});
    await once(denied.resume(), "close");
    await gateway.until(() => gateway.records.length === 2, "the record of the refused connection");
    const [refused] = gateway.records;
    assert.equal(refused?.kind, "refused");
    assert.equal(refused?.reason, "Authorization");
    assert.equal(refused?.kept, true);
    assert.deepEqual(refused?.decider?.origin?.path.slice(-2), ["rules", 0]);
    backend.close();
  });

  test("a UDP session leaves a record when it is over", async () => {
    await using backend = await UdpPeer.open((text) => `echo:${text}`);
    const tcpRoutes = [{ name: "dns", backends: [{ host: `127.0.0.1:${backend.port}` }] }];
    await using gateway = await LocalGateway.start({
      binds: [{ port: 0, listeners: [{ name: "dns", protocol: "UDP", tcpRoutes }] }],
      frontendPolicies: { udp: { idleTimeout: "50ms" } },
    });
    await using client = await UdpPeer.open();
    assert.equal(await client.ask("hi", gateway.port()), "echo:hi");
    await gateway.until(() => gateway.records.length === 1, "the record");
    const [record] = gateway.records;
    assert.deepEqual(
      [record?.kind, record?.version, record?.received, record?.sent, record?.route],
      ["session", "udp", 2, 7, "default/dns"],
    );
  });

  test("a UDP client that may not connect leaves a record, and a flood of them not more", async () => {
    const tcpRoutes = [{ name: "dns", backends: [{ host: "127.0.0.1:9" }] }];
    await using gateway = await LocalGateway.start({
      binds: [{ port: 0, listeners: [{ name: "dns", protocol: "UDP", tcpRoutes }] }],
      frontendPolicies: { networkAuthorization: { rules: [{ deny: "true" }] } },
    });
    await using client = await UdpPeer.open();
    for (let i = 0; i < 20; i++) client.send("hi", gateway.port());
    await gateway.until(() => gateway.records.length > 0, "the record");
    const [record, ...others] = gateway.records;
    assert.deepEqual(
      [record?.kind, record?.version, record?.listener, record?.error, record?.kept],
      ["refused", "udp", "dns", "TG_AUTHORIZATION", true],
    );
    assert.deepEqual(record?.decider?.origin?.path.slice(-2), ["rules", 0]);
    assert.deepEqual(others, []);
  });

  test("a tunnel that fails leaves a record with the error", async () => {
    await using gateway = await LocalGateway.start({
      binds: [{ port: 0, tunnelProtocol: "connect", listeners: [{ routes: [] }] }],
    });
    const requests = {
      "GET / HTTP/1.1\r\nhost: a\r\n\r\n": [405, "TG_METHOD_NOT_ALLOWED"],
      "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n": [404, "TG_BIND_NOT_FOUND"],
    } as const;
    for (const [request, expected] of Object.entries(requests)) {
      const before = gateway.records.length;
      const socket = connect(gateway.port(), "127.0.0.1");
      socket.end(request);
      await once(socket.resume(), "close");
      await gateway.until(() => gateway.records.length > before, "the record");
      const [record] = gateway.records;
      assert.deepEqual([record?.kind, record?.status, record?.error], ["connection", ...expected]);
      assert.equal(record?.kept, true);
    }
  });

  test("a response that a policy makes has that policy as its decider", async () => {
    const routes = [
      { name: "direct", matches: [{ path: { exact: "/direct" } }], policies: { directResponse: { status: 204 } } },
      {
        name: "moved",
        matches: [{ path: { exact: "/moved" } }],
        policies: { requestRedirect: { authority: { host: "b.test" } } },
      },
    ];
    await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
    for (const [path, policy] of [
      ["/direct", "directResponse"],
      ["/moved", "requestRedirect"],
    ] as const) {
      const before = gateway.records.length;
      await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { redirect: "manual" });
      await gateway.until(() => gateway.records.length > before, "the record");
      const [record] = gateway.records;
      assert.deepEqual([record?.reason, record?.error, record?.kept], ["DirectResponse", undefined, undefined]);
      assert.deepEqual([record?.decider?.policy, record?.decider?.phase], [policy, "route"]);
      assert.deepEqual(record?.decider?.origin?.path.slice(-2), ["policies", policy]);
    }
  });
});
