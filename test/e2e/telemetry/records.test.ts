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
});
