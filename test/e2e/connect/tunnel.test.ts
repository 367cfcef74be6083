import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, suite, test } from "node:test";
import { connect } from "node:tls";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { EchoServer } from "../tcp/echo-server.ts";
import { logged } from "../tls/support.ts";
import { closedPort } from "../trace/support.ts";

const outer = { port: 0, tunnelProtocol: "connect", listeners: [{ routes: [] }] };
const request = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

/** A connection whose tunnel to `authority` is open. */
async function tunnel(gateway: LocalGateway, authority: string, early = "", fields = ""): Promise<RawPeer> {
  const peer = await RawPeer.connect(gateway.port("bind/0"));
  peer.send(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${fields}\r\n${early}`);
  assert.equal(statusOf(await peer.message(true)), 200);
  return peer;
}

suite("ports of tunnels", () => {
  test("the bind of the destination port serves the connection inside a tunnel, with the tunnel's client as its peer", async () => {
    await using upstream = await RawUpstream.answering(() => reply("inside"));
    const routes = [{ name: "r", backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    await using gateway = await LocalGateway.start({
      binds: [outer, { port: 8080, mode: "internal", listeners: [{ name: "web", routes }] }],
    });
    for (const early of [false, true]) {
      const peer = await tunnel(gateway, "any.example:8080", early ? request("h") : "");
      if (!early) peer.send(request("h"));
      assert.equal((await peer.message()).body, "inside");
      await peer.closed();
      peer.end();
      const source = `127.0.0.1:${peer.socket.localPort}`;
      await logged(gateway, { listener: "web", "http.method": "GET", "http.status": 200, "src.addr": source });
      await logged(gateway, { "http.method": "CONNECT", "http.host": "any.example:8080", "src.addr": source });
    }
  });

  test("fields of the access log can be added and removed for tunnels too", async () => {
    await using echo = await EchoServer.start("hello");
    const add = { of: "request.host", code: "response.code", by: "source.port" };
    const filter = "has(request.method) && response.code < 500";
    await using gateway = await LocalGateway.start({
      frontendPolicies: { accessLog: { filter, add, remove: ["src.addr"] } },
      binds: [
        outer,
        {
          port: 8080,
          mode: "internal",
          listeners: [{ protocol: "TCP", tcpRoutes: [{ backends: [{ host: echo.address }] }] }],
        },
      ],
    });
    const peer = await tunnel(gateway, "any.example:8080");
    const by = peer.socket.localPort;
    await peer.take("hello");
    peer.end();
    await peer.closed();
    await logged(gateway, { "http.method": "CONNECT", of: "any.example:8080", code: 200, by, "src.addr": undefined });
    assert.equal(gateway.lines.filter(({ scope }) => scope === "request").length, 1);
  });

  test("expressions read the headers of the tunnel's CONNECT request; outside of tunnels they are absent", async () => {
    await using upstream = await RawUpstream.answering(() => reply("inside"));
    const header = (value: string): object => ({ transformations: { response: { set: { "x-is": value } } } });
    const inside = {
      name: "inside",
      matches: [{ path: { pathPrefix: "/" } }],
      policies: header('source.connectHeaders["proxy-authorization"] + " to " + source.connectHeaders.host'),
      backends: [{ host: `127.0.0.1:${upstream.port}` }],
    };
    const direct = { ...inside, name: "direct", policies: header("has(source.connectHeaders) ? 'there' : 'absent'") };
    const plain = await closedPort();
    await using gateway = await LocalGateway.start({
      frontendPolicies: {
        networkAuthorization: { rules: [{ deny: 'source.connectHeaders["x-user"] == "mallory"' }] },
      },
      binds: [
        outer,
        { port: 8080, mode: "internal", listeners: [{ routes: [inside] }] },
        { port: plain, listeners: [{ routes: [direct] }] },
      ],
    });
    const xIs = async (peer: RawPeer): Promise<string[]> => {
      peer.send(request("h"));
      return valuesOf(await peer.message(), "x-is");
    };
    const alice = "Proxy-Authorization: Basic YTpi\r\nX-User: alice\r\n";
    assert.deepEqual(await xIs(await tunnel(gateway, "any:8080", "", alice)), ["Basic YTpi to any:8080"]);
    const refused = await tunnel(gateway, "any:8080", "", "X-User: mallory\r\n");
    await refused.closed();
    assert.deepEqual(await xIs(await RawPeer.connect(plain)), ["absent"]);
  });

  test("a port without a bind is 404 and closes the connection; another method is 405", async () => {
    await using gateway = await LocalGateway.start({ binds: [outer] });
    const peer = await RawPeer.connect(gateway.port("bind/0"));
    peer.send("CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n");
    const missing = await peer.message();
    assert.deepEqual([statusOf(missing), missing.body], [404, "bind not found"]);
    assert.equal(await peer.closed(), "end");
    const other = await RawPeer.connect(gateway.port("bind/0"));
    other.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert.equal(statusOf(await other.message()), 405);
  });

  test("the internal bind without a port serves all other ports; large transfers pass both ways, and each direction ends separately", async () => {
    await using echo = await EchoServer.start("");
    const tcpRoutes = [{ backends: [{ host: `127.0.0.1:${echo.port}` }] }];
    await using gateway = await LocalGateway.start({
      binds: [outer, { mode: "internal", listeners: [{ protocol: "TCP", tcpRoutes }] }],
    });
    const peer = await tunnel(gateway, "10.0.0.1:5432");
    const sent = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdef");
    peer.socket.removeAllListeners("data");
    const pieces: Buffer[] = [];
    peer.socket.on("data", (bytes: Buffer) => pieces.push(bytes));
    peer.send(sent);
    peer.end();
    await once(peer.socket, "end");
    assert.ok(Buffer.concat(pieces).equals(sent));
  });

  test("a client that disconnects ends the connection inside the tunnel", async () => {
    await using upstream = await RawUpstream.listen();
    const tcpRoutes = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    await using gateway = await LocalGateway.start({
      binds: [outer, { mode: "internal", listeners: [{ protocol: "TCP", tcpRoutes }] }],
    });
    const leaving = await tunnel(gateway, "h:1");
    leaving.send("x");
    const backend = await upstream.connection();
    await backend.take("x");
    leaving.reset();
    await backend.closed();
    const staying = await tunnel(gateway, "h:1");
    (await upstream.connection(1)).reset();
    assert.equal(await staying.closed(), "reset");
  });
});

suite("TLS inside tunnels", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let host: Identity;
  before(() => {
    ca = new TestCa();
    host = ca.issue("host.example");
  });
  after(() => ca[Symbol.dispose]());

  test("terminates at the inner bind", async () => {
    await using upstream = await RawUpstream.answering(() => reply("secret"));
    const routes = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    const tls = { cert: host.certFile, key: host.keyFile };
    await using gateway = await LocalGateway.start({
      binds: [outer, { port: 443, mode: "internal", listeners: [{ protocol: "HTTPS", tls, routes }] }],
    });
    const open = async (authority: string): Promise<RawPeer> => {
      const { socket } = await tunnel(gateway, authority);
      socket.removeAllListeners("data");
      const secure = connect({ socket, servername: "host.example", ca: ca.cert });
      await once(secure, "secureConnect");
      return new RawPeer(secure);
    };
    const [first, second] = await Promise.all([open("host.example:443"), open("host.example:443")]);
    for (const peer of [second, first]) {
      peer.send(request("host.example"));
      assert.equal((await peer.message()).body, "secret");
    }
    const broken = await tunnel(gateway, "host.example:443", "not TLS");
    await broken.closed();
    await logged(gateway, { error: "not a TLS handshake" });
    const failing = await tunnel(gateway, "host.example:443");
    failing.socket.removeAllListeners("data");
    connect({ socket: failing.socket, servername: "host.example", ca: [] }).on("error", () => {});
    await failing.closed();
  });
});
