import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { createServer } from "node:tls";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { CLIENT_HELLO } from "../../helpers/client-hello.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream } from "../../helpers/raw-peer.ts";
import { EchoServer } from "../tcp/echo-server.ts";
import { get, logged, metric, NO_RESPONSE, tlsConnect } from "./support.ts";

suite("TLS listeners", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let identity: Identity;

  before(() => {
    ca = new TestCa();
    identity = ca.issue("one.host.example", "*.host.example");
  });
  after(() => ca[Symbol.dispose]());

  const trusted = (servername: string) => ({ ca: ca.cert, servername });
  const route = (name: string, address: string, ...hostnames: string[]) => ({
    name,
    hostnames,
    backends: [{ host: address }],
  });
  const bind = (...listeners: object[]): object => ({ binds: [{ port: 0, listeners }] });

  /** A server that terminates TLS, then greets and echoes. */
  async function secureEcho(): Promise<AsyncDisposable & { readonly address: string }> {
    const server = createServer({ cert: identity.cert, key: identity.key }, (socket) => {
      socket.on("error", () => {});
      socket.write(`secure ${socket.servername}`);
      socket.pipe(socket);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return {
      address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      [Symbol.asyncDispose]: async () => {
        server.close();
      },
    };
  }

  test("without a certificate, TLS passes through to the backend that the server name selects", async () => {
    await using secure = await secureEcho();
    await using other = await EchoServer.start("not TLS");
    const tcpRoutes = [
      route("any", other.address),
      route("wild", other.address, "*.host.example"),
      route("one", secure.address, "one.host.example"),
    ];
    await using gateway = await LocalGateway.start(bind({ name: "pass", protocol: "TLS", tcpRoutes }));
    const { peer } = await tlsConnect(gateway.port(), trusted("one.host.example"));
    await peer.take("secure one.host.example");
    const large = "x".repeat(1_000_000);
    peer.send(large);
    await peer.take(large);
    peer.end();
    await logged(gateway, { scope: "request", protocol: "tls", route: "default/one", "tls.sni": "one.host.example" });
    assert.equal(await metric(gateway, "downstream_connections_total", 'listener="pass"', 'protocol="tls"'), 1);
    await assert.rejects(tlsConnect(gateway.port(), trusted("two.host.example")));
    await logged(gateway, { scope: "request", route: "default/wild", "tls.sni": "two.host.example" });
    await assert.rejects(tlsConnect(gateway.port(), trusted("elsewhere.test")));
    await logged(gateway, { scope: "request", route: "default/any", "tls.sni": "elsewhere.test" });
  });

  test("a client that names no server matches only routes without hostnames", async () => {
    await using secure = await secureEcho();
    const listener = (...hostnames: string[]) => ({
      protocol: "TLS",
      tcpRoutes: [route("r", secure.address, ...hostnames)],
    });
    await using gateway = await LocalGateway.start(bind(listener("one.host.example")));
    const nameless = { ca: ca.cert, checkServerIdentity: () => undefined };
    await assert.rejects(tlsConnect(gateway.port(), nameless), { code: "ECONNRESET" });
    await logged(gateway, { scope: "request", error: "route not found, at binds[0].listeners[0]", reason: "NotFound" });
    await gateway.reconfigure(bind(listener()));
    const { peer } = await tlsConnect(gateway.port(), nameless);
    await peer.take("secure false");
    peer.socket.destroy();
  });

  test("the backend gets the ClientHello as it was sent, however it was split", async () => {
    await using upstream = await RawUpstream.listen();
    const tcpRoutes = [route("r", `127.0.0.1:${upstream.port}`)];
    await using gateway = await LocalGateway.start(bind({ protocol: "TLS", tcpRoutes }));
    const hello = CLIENT_HELLO;
    const client = await RawPeer.connect(gateway.port());
    for (const byte of hello) client.send(Buffer.of(byte));
    client.send("and more");
    const backend = await upstream.connection();
    assert.equal(await backend.take("and more"), `${hello.toString("latin1")}and more`);
    backend.send("answer");
    await client.take("answer");
    client.end();
    backend.end();
  });

  test("with a certificate, TLS is terminated at the gateway and the backend gets plaintext", async () => {
    await using upstream = await RawUpstream.listen();
    const tls = { cert: identity.certFile, key: identity.keyFile, root: ca.certFile };
    const tcpRoutes = [route("r", `127.0.0.1:${upstream.port}`, "one.host.example")];
    await using gateway = await LocalGateway.start(bind({ name: "ends", protocol: "TLS", tls, tcpRoutes }));
    const { cert, key } = ca.issue("client");
    const { peer, socket } = await tlsConnect(gateway.port(), { ...trusted("one.host.example"), cert, key });
    assert.equal(socket.alpnProtocol, false);
    const backend = await upstream.connection();
    backend.send("220 ready");
    await peer.take("220 ready");
    const large = "x".repeat(1_000_000);
    peer.send(large);
    await backend.take(large);
    peer.end();
    assert.equal(await backend.closed(), "end");
    backend.send("after the end");
    await peer.take("after the end");
    backend.end();
    assert.equal(await peer.closed(), "end");
    await logged(gateway, { scope: "request", listener: "ends", protocol: "tls", error: undefined });
    assert.equal(await metric(gateway, "tls_handshake_duration_seconds_count", 'listener="ends"'), 1);
    await assert.rejects(get(gateway.port(), "one.host.example", { ca: ca.cert }), NO_RESPONSE);
  });

  test("HTTPS, TLS passthrough and terminated TLS share a port by server name", async () => {
    await using secure = await secureEcho();
    await using inside = await EchoServer.start("inside");
    const tls = { cert: identity.certFile, key: identity.keyFile };
    const direct = { policies: { directResponse: { status: 200, body: "web" } } };
    await using gateway = await LocalGateway.start(
      bind(
        { hostname: "web.host.example", protocol: "HTTPS", tls, routes: [direct] },
        { hostname: "pass.host.example", protocol: "TLS", tcpRoutes: [route("p", secure.address)] },
        { hostname: "ends.host.example", protocol: "TLS", tls, tcpRoutes: [route("e", inside.address)] },
      ),
    );
    const port = gateway.port();
    assert.equal((await get(port, "web.host.example", { ca: ca.cert })).body, "web");
    const passed = await tlsConnect(port, trusted("pass.host.example"));
    await passed.peer.take("secure pass.host.example");
    const ended = await tlsConnect(port, trusted("ends.host.example"));
    await ended.peer.take("inside");
    passed.socket.destroy();
    ended.socket.destroy();
  });
});
