import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, suite, test } from "node:test";
import { connect } from "node:tls";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";
import { logged } from "../tls/support.ts";

const V1 = Buffer.from("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n");
const V2 = Buffer.from(`0d0a0d0a000d0a515549540a${"2111000c"}c0000201c6336402dc0401bb`, "hex");
const LOCAL = Buffer.from("0d0a0d0a000d0a515549540a20000000", "hex");
const CLIENT = "192.0.2.1:56324";
const REQUEST = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
const answering = (): Promise<RawUpstream> => RawUpstream.answering(() => reply("hello"));

suite("PROXY headers on HTTP ports", () => {
  test("the client's address is that of the header, however its bytes are split", async () => {
    await using upstream = await answering();
    await using plane = await TestPlane.start(upstream.port, {
      frontend: { proxyProtocol: { version: "all", mode: "strict" } },
    });
    for (const header of [V1, V2]) {
      const bytes = Buffer.concat([header, Buffer.from(REQUEST)]);
      for (let cut = 1; cut <= header.length + 1; cut++) {
        const client = await RawPeer.connect(plane.port);
        client.send(bytes.subarray(0, cut));
        // The second part is sent separately once the first has left the socket's buffer.
        await new Promise((resolve) => setImmediate(resolve));
        client.send(bytes.subarray(cut));
        assert.equal((await client.message()).body, "hello");
        const line = await plane.logged("http.status");
        assert.equal(line["src.addr"], CLIENT);
        plane.lines.length = 0;
      }
    }
  });

  test("LOCAL keeps the address of the socket", async () => {
    await using upstream = await answering();
    await using plane = await TestPlane.start(upstream.port, {
      frontend: { proxyProtocol: { version: "v2", mode: "strict" } },
    });
    const client = await RawPeer.connect(plane.port);
    client.send(Buffer.concat([LOCAL, Buffer.from(REQUEST)]));
    assert.equal((await client.message()).body, "hello");
    assert.equal((await plane.logged("http.status"))["src.addr"], `127.0.0.1:${client.socket.localPort}`);
  });

  test("strict: a connection without a header of the version is closed, and the log says why", async () => {
    await using upstream = await answering();
    await using plane = await TestPlane.start(upstream.port, {
      frontend: { proxyProtocol: { version: "v2", mode: "strict" } },
    });
    for (const [bytes, error] of [
      [REQUEST, "the connection does not begin with a PROXY header of version 2"],
      [V1, "the connection does not begin with a PROXY header of version 2"],
      [Buffer.concat([V2.subarray(0, 12), Buffer.from([0x41, 0, 0, 0])]), "malformed PROXY header: version 4"],
    ] as const) {
      const client = await RawPeer.connect(plane.port);
      client.send(bytes);
      await client.closed();
      assert.equal(client.received, "");
      await plane.logged(error);
      plane.lines.length = 0;
    }
    const leaving = await RawPeer.connect(plane.port);
    leaving.send(V2.subarray(0, 5));
    leaving.end();
    await leaving.closed();
    await plane.logged("the connection closed before a PROXY header of version 2");
    assert.equal(upstream.connections.length, 0);
  });

  test("a rule that denies an address applies however a text header spells it", async () => {
    await using upstream = await answering();
    await using plane = await TestPlane.start(upstream.port, {
      frontend: {
        proxyProtocol: { version: "v1", mode: "strict", from: ["127.0.0.0/8"] },
        networkAuthorization: [{ mode: "deny", expression: 'source.address == "203.0.113.9"' }],
      },
    });
    for (const address of ["::ffff:203.0.113.9", "::FFFF:cb00:7109", "0:0:0:0:0:ffff:cb00:7109"]) {
      const client = await RawPeer.connect(plane.port);
      client.send(`PROXY TCP6 ${address} ::1 1 2\r\n${REQUEST}`);
      await client.closed();
      assert.equal(client.received, "", address);
    }
    assert.equal(upstream.connections.length, 0);
  });

  test("only peers in `from` may send a header", async () => {
    await using upstream = await answering();
    for (const mode of ["strict", "optional"] as const) {
      await using plane = await TestPlane.start(upstream.port, {
        frontend: { proxyProtocol: { version: "v1", mode, from: ["192.0.2.0/24"] } },
      });
      const forging = await RawPeer.connect(plane.port);
      forging.send(Buffer.concat([V1, Buffer.from(REQUEST)]));
      if (mode === "strict") {
        await forging.closed();
        assert.equal(forging.received, "");
        await plane.logged("frontendPolicies.proxyProtocol.from");
        continue;
      }
      assert.equal(statusOf(await forging.message()), 400);
      const plain = await RawPeer.connect(plane.port);
      plain.send(REQUEST);
      assert.equal(statusOf(await plain.message()), 200);
      assert.equal((await plane.logged("http.method"))["src.addr"], `127.0.0.1:${plain.socket.localPort}`);
    }
  });

  test("optional: connections with and without a header are served", async () => {
    await using upstream = await answering();
    await using plane = await TestPlane.start(upstream.port, {
      frontend: { proxyProtocol: { version: "v1", mode: "optional" } },
    });
    for (const start of [V1, Buffer.alloc(0)]) {
      const client = await RawPeer.connect(plane.port);
      client.send(Buffer.concat([start, Buffer.from(REQUEST)]));
      assert.equal(statusOf(await client.message()), 200);
      const expected = start === V1 ? CLIENT : `127.0.0.1:${client.socket.localPort}`;
      assert.equal((await plane.logged("http.status"))["src.addr"], expected);
      plane.lines.length = 0;
    }
    const broken = await RawPeer.connect(plane.port);
    broken.send("PROXY TCP4 nonsense\r\n");
    await broken.closed();
    await plane.logged("malformed PROXY header");
  });
});

suite("PROXY headers before TLS and TCP", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let host: Identity;
  before(() => {
    ca = new TestCa();
    host = ca.issue("host.example");
  });
  after(() => ca[Symbol.dispose]());

  const config = (upstream: RawUpstream, listener: object): object => {
    const backends = [{ host: `127.0.0.1:${upstream.port}` }];
    return {
      binds: [{ port: 0, tunnelProtocol: "proxy", listeners: [{ ...listener, [routesOf(listener)]: [{ backends }] }] }],
    };
  };
  const routesOf = (listener: object): string =>
    "protocol" in listener && listener.protocol === "HTTPS" ? "routes" : "tcpRoutes";

  test("terminated TLS and TLS passthrough see the client's address", async () => {
    const tls = { cert: host.certFile, key: host.keyFile };
    await using upstream = await answering();
    await using gateway = await LocalGateway.start(config(upstream, { protocol: "HTTPS", tls }));
    const carrier = await RawPeer.connect(gateway.port());
    carrier.socket.removeAllListeners("data");
    carrier.send(V2);
    const socket = connect({ socket: carrier.socket, servername: "host.example", ca: ca.cert });
    await once(socket, "secureConnect");
    const client = new RawPeer(socket);
    client.send(REQUEST.replace("Host: h", "Host: host.example"));
    assert.equal((await client.message()).body, "hello");
    await logged(gateway, { "src.addr": CLIENT, "http.status": 200 });

    const untold = await RawPeer.connect(gateway.port());
    untold.send(Buffer.from("1603010200010001fc0303", "hex"));
    await untold.closed();
    await logged(gateway, { error: "the connection does not begin with a PROXY header of version 2" });
  });

  test("TCP: the backend gets the bytes after the header", async () => {
    await using upstream = await RawUpstream.listen();
    await using gateway = await LocalGateway.start(config(upstream, { protocol: "TCP" }));
    const client = await RawPeer.connect(gateway.port());
    client.send(Buffer.concat([V2, Buffer.from("first")]));
    const backend = await upstream.connection();
    await backend.take("first");
    client.send("second");
    await backend.take("second");
    assert.equal(backend.received, "");
    backend.send("answer");
    await client.take("answer");
    client.end();
    backend.end();
    await logged(gateway, { "src.addr": CLIENT, protocol: "tcp", error: undefined });
  });
});
