import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import { createServer as createTlsServer, TLSSocket } from "node:tls";
import { type Identity, noOpenssl, TestCa } from "../../../test/helpers/certificates.ts";
import { closedPort, type RawPeer, RawUpstream } from "../../../test/helpers/raw-peer.ts";
import { FIRST_HOP, headEnd } from "../../http/loop.ts";
import { admitted } from "../../net/testing/egress.ts";
import type { Transport } from "../../net/transport.ts";
import type { BackendTls } from "../../tls/tls-settings.ts";
import type { PoolTarget } from "../settings/pool-target.ts";
import { type Carries, Dialer } from "./dialer.ts";

/** The proxy, or the target itself, is at this port. */
const at = (port: number) => ({ host: "127.0.0.1", port });
/** A target that only proxies can reach, through one at `port`. */
const behind = (port: number, extra: Partial<PoolTarget> = {}): PoolTarget => ({
  host: "target.example",
  port: 443,
  tunnel: { proxies: [at(port)], authorization: "Basic c2VjcmV0" },
  ...extra,
});

/** What one attempt to connect leads to. */
class Dialled {
  readonly connected = Promise.withResolvers<Transport>();
  agreed: string | undefined;
  /** The error's text; `closed` for an end without an error. */
  readonly failed = Promise.withResolvers<string>();
  readonly cancel: () => void;
  received = "";
  reached = 0;
  calls = 0;
  ends = 0;
  #wake = (): void => {};

  constructor(target: PoolTarget, port: number, carries: Carries = "http1") {
    this.connected.promise.catch(() => {});
    const onClose = (error: Error | undefined): void => {
      this.calls++;
      const text = error?.message ?? "closed";
      this.failed.resolve(text);
      this.connected.reject(new Error(text));
    };
    this.cancel = new Dialer(target, 0).dial(
      admitted(at(port)),
      "127.0.0.1",
      carries,
      { reached: () => this.reached++ },
      {
        onConnect: (transport, agreed) => {
          this.calls++;
          this.agreed = agreed;
          this.connected.resolve(transport);
          return {
            onData: (buffer, length) => {
              this.received += buffer.toString("latin1", 0, length);
              this.#wake();
            },
            onEnd: () => this.ends++,
            onDrain: () => {},
            onFault: (error) => this.failed.resolve(`fault: ${String(error)}`),
            onClose,
          };
        },
        onClose,
      },
    );
  }

  async bytes(text: string): Promise<void> {
    while (!this.received.includes(text))
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve;
        void this.failed.promise.then((error) => reject(new Error(error)));
      });
  }
}

test("directly to the target; a refused connection and a cancelled one are reported once", async () => {
  await using upstream = await RawUpstream.listen();
  const dialled = new Dialled(at(upstream.port), upstream.port);
  const transport = await dialled.connected.promise;
  (await upstream.connection()).send("hello");
  await dialled.bytes("hello");
  transport.destroy();
  await dialled.failed.promise;
  const refused = new Dialled(at(1), await closedPort());
  assert.match(await refused.failed.promise, /^connect ECONNREFUSED/);
  assert.equal(refused.calls, 1);
  const cancelled = new Dialled(at(upstream.port), upstream.port);
  cancelled.cancel();
  assert.equal(await cancelled.failed.promise, "closed");
  assert.equal(cancelled.calls, 1);
});

suite("through a proxy", () => {
  test("plaintext HTTP/1.1 is forwarded: no tunnel, and the request names its target", async () => {
    await using proxy = await RawUpstream.listen();
    const { viaProxy } = new Dialer(behind(proxy.port), 0);
    assert.deepEqual(viaProxy, {
      origin: "http://target.example:443",
      authority: "target.example:443",
      authorization: "Basic c2VjcmV0",
    });
    const dialled = new Dialled(behind(proxy.port), proxy.port);
    const transport = await dialled.connected.promise;
    transport.writeText("forward this");
    assert.equal(await (await proxy.connection()).take("this"), "forward this");
    transport.destroy();
    await dialled.failed.promise;
  });

  test("raw bytes go through a tunnel; bytes after the proxy's response are the target's", async () => {
    await using proxy = await RawUpstream.listen();
    const dialled = new Dialled(behind(proxy.port), proxy.port, "raw");
    const server = await proxy.connection();
    const head = "CONNECT target.example:443 HTTP/1.1\r\nhost: target.example:443\r\n";
    assert.equal(await server.take("\r\n\r\n"), `${head}proxy-authorization: Basic c2VjcmV0\r\n${headEnd(FIRST_HOP)}`);
    server.send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbanner");
    const transport = await dialled.connected.promise;
    await dialled.bytes("banner");
    assert.equal(dialled.received, "banner");
    transport.writeText("to the target");
    assert.equal(await server.take("target"), "to the target");
    server.end();
    transport.end();
    assert.equal(await dialled.failed.promise, "closed");
    assert.deepEqual([dialled.calls, dialled.ends], [2, 1]);
  });

  for (const { name, answer, error } of [
    {
      name: "refuses",
      answer: "HTTP/1.1 407 No\r\n\r\n",
      error: "the proxy returned 407 to CONNECT target.example:443",
    },
    {
      name: "switches to another protocol",
      answer: "HTTP/1.1 101 Switching Protocols\r\n\r\n",
      error: "the proxy returned 101 to CONNECT target.example:443",
    },
    { name: "answers without HTTP", answer: "SSH-2.0\r\n\r\n", error: /^the proxy's response is invalid: / },
    {
      name: "sends a head without end",
      answer: `HTTP/1.1 200 OK\r\nx: ${"y".repeat(20_000)}`,
      error: "the head of the proxy's response is too large",
    },
    { name: "closes", answer: undefined, error: "the proxy closed the connection instead of opening a tunnel" },
  ])
    test(`a proxy that ${name} fails the attempt once, and its connection is closed`, async () => {
      await using proxy = await RawUpstream.listen();
      const dialled = new Dialled(behind(proxy.port), proxy.port, "raw");
      const server = await proxy.connection();
      await server.take("\r\n\r\n");
      if (answer === undefined) server.end();
      else server.send(answer);
      const text = await dialled.failed.promise;
      if (typeof error === "string") assert.equal(text, error);
      else assert.match(text ?? "", error);
      await server.closed();
      assert.equal(dialled.calls, 1);
    });

  test("an attempt that is cancelled closes the connection, before and after the tunnel is open", async () => {
    await using proxy = await RawUpstream.listen();
    const before = new Dialled(behind(proxy.port), proxy.port, "raw");
    const first = await proxy.connection();
    await first.take("\r\n\r\n");
    before.cancel();
    await first.closed();
    await before.failed.promise;
    assert.equal(before.calls, 1);
    const inside = new Dialled(behind(proxy.port), proxy.port, "raw");
    const second = await proxy.connection(1);
    await second.take("\r\n\r\n");
    second.send("HTTP/1.1 200 OK\r\n\r\n");
    await inside.connected.promise;
    inside.cancel();
    await second.closed();
  });
});

suite("TLS", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let identity: Identity;
  before(() => {
    ca = new TestCa();
    identity = ca.issue("target.example");
  });
  after(() => ca?.[Symbol.dispose]());

  const trusting = (extra: Partial<BackendTls> = {}): BackendTls => ({
    root: ca.cert,
    hostname: "target.example",
    insecure: false,
    insecureHost: false,
    ...extra,
  });

  /** A TLS server that agrees to any of these protocols, and what it received from its clients. */
  async function tlsServer(ALPNProtocols: string[]): Promise<AsyncDisposable & { port: number; agreed: unknown[] }> {
    const agreed: unknown[] = [];
    const sockets: Socket[] = [];
    const server: Server = createTlsServer({ cert: identity.cert, key: identity.key, ALPNProtocols }, (socket) => {
      agreed.push(socket.alpnProtocol);
      socket.on("error", () => {});
      socket.write("secret");
    });
    server.on("connection", (socket: Socket) => sockets.push(socket));
    server.on("tlsClientError", () => {});
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return {
      port: (server.address() as AddressInfo).port,
      agreed,
      async [Symbol.asyncDispose]() {
        for (const socket of sockets) socket.destroy();
        server.close();
      },
    };
  }

  test("a connection for HTTP/1.1 never agrees to h2, whatever the configuration offers; one for HTTP/2 does", async () => {
    await using server = await tlsServer(["h2", "http/1.1"]);
    const target = { ...at(server.port), tls: trusting({ alpn: ["h2", "http/1.1"] }) };
    const dialled = new Dialled(target, server.port);
    const transport = await dialled.connected.promise;
    await dialled.bytes("secret");
    transport.destroy();
    assert.equal(dialled.reached, 1, "the clock knows when the handshake began");
    const http2 = new Dialled(target, server.port, "http2");
    const second = await http2.connected.promise;
    await http2.bytes("secret");
    second.destroy();
    assert.deepEqual([dialled.agreed, http2.agreed], ["http/1.1", "h2"]);
    assert.deepEqual(server.agreed, ["http/1.1", "h2"]);
  });

  test("what is offered: HTTP/2 alone, or both versions where the server decides", async () => {
    await using old = await tlsServer(["http/1.1"]);
    const target = { ...at(old.port), tls: trusting() };
    const either = new Dialled(target, old.port, "both");
    (await either.connected.promise).destroy();
    assert.equal(either.agreed, "http/1.1");
    assert.match(await new Dialled(target, old.port, "http2").failed.promise, /alert/);
    await using silent = await tlsServer([]);
    const unknown = new Dialled({ ...at(silent.port), tls: trusting() }, silent.port, "both");
    (await unknown.connected.promise).destroy();
    assert.equal(unknown.agreed, undefined);
  });

  test("a certificate of another name or CA fails the attempt with the reason, directly and in a tunnel", async () => {
    await using server = await tlsServer(["http/1.1"]);
    const other = trusting({ hostname: "other.example" });
    const wrongName = new Dialled({ ...at(server.port), tls: other }, server.port);
    assert.match(await wrongName.failed.promise, /the certificate is for target\.example, not for other\.example/);
    const { root: _, ...untrusting } = trusting();
    const wrongCa = new Dialled({ ...at(server.port), tls: untrusting }, server.port);
    assert.match(await wrongCa.failed.promise, /unable to verify|self-signed/);
    for (const { calls } of [wrongName, wrongCa]) assert.equal(calls, 1);

    await using proxy = await RawUpstream.listen();
    const tunnelled = new Dialled(behind(proxy.port, { tls: other }), proxy.port);
    const peer = await proxy.connection();
    await openTunnel(peer);
    const inside = new TLSSocket(peer.socket, { isServer: true, cert: identity.cert, key: identity.key });
    inside.on("error", () => {});
    assert.match(await tunnelled.failed.promise, /the certificate is for target\.example, not for other\.example/);
    assert.equal(tunnelled.calls, 1);
    inside.destroy();
  });

  test("in a tunnel the handshake is with the target; a cancelled one closes the connection to the proxy", async () => {
    await using proxy = await RawUpstream.listen();
    const dialled = new Dialled(behind(proxy.port, { tls: trusting() }), proxy.port);
    const peer = await proxy.connection();
    await openTunnel(peer);
    const inside = new TLSSocket(peer.socket, { isServer: true, cert: identity.cert, key: identity.key });
    inside.write("secret");
    const transport = await dialled.connected.promise;
    await dialled.bytes("secret");
    assert.equal(dialled.reached, 1);
    transport.destroy();
    await dialled.failed.promise;
    inside.destroy();

    const stalled = new Dialled(behind(proxy.port, { tls: trusting() }), proxy.port);
    const second = await proxy.connection(1);
    await second.take("\r\n\r\n");
    second.send("HTTP/1.1 200 OK\r\n\r\n");
    await second.until(() => second.received.length > 5, "the ClientHello");
    stalled.cancel();
    await second.closed();
    await stalled.failed.promise;
    assert.equal(stalled.calls, 1);
  });

  /** Responds to a CONNECT and leaves the bytes that follow to the next owner of the socket. */
  async function openTunnel(peer: RawPeer): Promise<void> {
    await peer.take("\r\n\r\n");
    peer.socket.removeAllListeners("data");
    peer.socket.removeAllListeners("error");
    peer.socket.on("error", () => {});
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
  }
});
