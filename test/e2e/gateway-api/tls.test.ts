/** What the conformance suite of the Gateway API requires of TLS listeners, without Kubernetes. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, suite, test } from "node:test";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { get, NO_RESPONSE, tlsConnect } from "../tls/support.ts";

suite("TLS listeners as the Gateway API defines them", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let any: Identity;

  before(() => {
    ca = new TestCa();
    any = ca.issue("example.org", "second-example.org", "unknown-example.org", "*.wildcard.org", "*.example.com");
  });
  after(() => ca[Symbol.dispose]());

  const trusted = (): ConnectionOptions => ({ ca: ca.cert });
  const answering = (body: string, hostnames: string[] = []) => ({
    hostnames,
    policies: { directResponse: { status: 200, body } },
  });
  const https = (name: string, hostname: string, tls: object = {}, routes: object[] = [answering(name)]) => ({
    name,
    hostname,
    protocol: "HTTPS",
    tls: { cert: any.certFile, key: any.keyFile, ...tls },
    routes,
  });
  const bind = (...listeners: object[]): object => ({ binds: [{ port: 0, listeners }] });

  test("HTTPRouteHTTPSListenerDetectMisdirectedRequests", async () => {
    await using gateway = await LocalGateway.start(
      bind(
        https("any", "", {}, [answering("v1", ["example.org"])]),
        https("exact", "second-example.org", {}, [answering("v2")]),
        https("wildcard", "*.wildcard.org", {}, [answering("v3")]),
        https("inside", "fourth-example.wildcard.org", {}, [answering("v4")]),
      ),
    );
    const cases: readonly (readonly [serverName: string, host: string, result: string | number])[] = [
      ["example.org", "example.org", "v1"],
      ["example.org", "second-example.org", 421],
      ["example.org", "unknown-example.org", 404],
      ["second-example.org", "second-example.org", "v2"],
      ["second-example.org", "example.org", 421],
      ["second-example.org", "unknown-example.org", 421],
      ["third-example.wildcard.org", "third-example.wildcard.org", "v3"],
      ["third-example.wildcard.org", "fifth-example.wildcard.org", "v3"],
      ["third-example.wildcard.org", "fourth-example.wildcard.org", 421],
      ["third-example.wildcard.org", "second-example.org", 421],
      ["third-example.wildcard.org", "unknown-example.org", 421],
      ["fourth-example.wildcard.org", "fourth-example.wildcard.org", "v4"],
      ["fourth-example.wildcard.org", "fifth-example.wildcard.org", 421],
      ["unknown-example.org", "example.org", "v1"],
      ["unknown-example.org", "unknown-example.org", 404],
    ];
    for (const [servername, host, result] of cases) {
      const answer = await get(gateway.port(), host, { ...trusted(), servername });
      const got = statusOf(answer) === 200 ? answer.body : statusOf(answer);
      assert.equal(got, result, `${servername} then ${host}`);
    }
  });

  test("GatewayFrontendClientCertificateValidation, and its insecure fallback", async () => {
    using other = new TestCa("other CA");
    using third = new TestCa("third CA");
    const bundle = `${ca.folder}/bundle.pem`;
    await writeFile(bundle, `${ca.cert}\n${other.cert}`);
    const routes = [{ policies: { directResponse: { status: 200, bodyExpression: "string(has(source.subjectCn))" } } }];
    await using gateway = await LocalGateway.start(
      bind(
        https("required", "example.org", { root: bundle }, routes),
        https("optional", "second-example.org", { root: bundle, clientCertificates: "optional" }, routes),
      ),
    );
    const port = gateway.port();
    const as = ({ cert, key }: Identity): ConnectionOptions => ({ ...trusted(), cert, key });
    const [first, second, stranger] = [ca.issue("client"), other.issue("client"), third.issue("client")];
    assert.equal((await get(port, "example.org", as(first))).body, "true");
    assert.equal((await get(port, "example.org", as(second))).body, "true", "each CA of the bundle counts");
    await assert.rejects(get(port, "example.org", as(stranger)), NO_RESPONSE);
    await assert.rejects(get(port, "example.org", trusted()), NO_RESPONSE);

    assert.equal((await get(port, "second-example.org", as(second))).body, "true");
    assert.equal(
      (await get(port, "second-example.org", as(stranger))).body,
      "false",
      "served, but without an identity",
    );
    assert.equal((await get(port, "second-example.org", trusted())).body, "false");

    // A resumed session has the client certificate of its first handshake.
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const options = { ...as(stranger), servername: "second-example.org", maxVersion };
      const session = await sessionOf(port, options);
      const { peer, socket } = await tlsConnect(port, { ...options, session });
      assert.ok(socket.isSessionReused(), maxVersion);
      peer.send("GET / HTTP/1.1\r\nHost: second-example.org\r\n\r\n");
      assert.equal((await peer.message()).body, "false", maxVersion);
      socket.destroy();
    }
  });

  test("several certificates: by server name, then by the type of key that the client supports", async () => {
    const ecdsa = ca.issue("a.example.com");
    const rsa = ca.issueWith("rsa:2048", "a.example.com", "b.example.com");
    const certificates = { cert: ecdsa.certFile, key: ecdsa.keyFile };
    const otherCertificates = [{ cert: rsa.certFile, key: rsa.keyFile }];
    await using gateway = await LocalGateway.start(bind(https("l", "", { ...certificates, otherCertificates })));
    const shown = async (servername: string, options: ConnectionOptions = {}): Promise<string | undefined> => {
      const { socket } = await tlsConnect(gateway.port(), { ...trusted(), servername, ...options });
      const type = socket.getPeerX509Certificate()?.publicKey.asymmetricKeyType;
      socket.destroy();
      return type;
    };
    assert.equal(await shown("a.example.com"), "ec");
    assert.equal(
      await shown("a.example.com", { maxVersion: "TLSv1.2", ciphers: "ECDHE-RSA-AES128-GCM-SHA256" }),
      "rsa",
    );
    assert.equal(await shown("b.example.com"), "rsa");
    assert.equal(await shown("c.example.com", { checkServerIdentity: () => undefined }), "ec");
  });

  test("TLSRouteModeMixed: HTTPS, terminated TLS and passed-through TLS on one port", async () => {
    await using plain = await RawUpstream.listen(async (peer) => {
      await peer.take("hello");
      peer.send("plain");
    });
    await using behind = await LocalGateway.start(bind(https("backend", "abc.example.com")));
    const to = (name: string, port: number) => [{ hostnames: [name], backends: [{ host: `127.0.0.1:${port}` }] }];
    const tls = { cert: any.certFile, key: any.keyFile };
    await using gateway = await LocalGateway.start(
      bind(
        https("web", "example.org"),
        { hostname: "tls.example.com", protocol: "TLS", tls, tcpRoutes: to("tls.example.com", plain.port) },
        { hostname: "abc.example.com", protocol: "TLS", tcpRoutes: to("abc.example.com", behind.port()) },
      ),
    );
    const port = gateway.port();
    assert.equal((await get(port, "example.org", trusted())).body, "web");
    assert.equal((await get(port, "abc.example.com", trusted())).body, "backend");
    const { peer, socket } = await tlsConnect(port, { ...trusted(), servername: "tls.example.com" });
    peer.send("hello");
    await peer.take("plain");
    socket.destroy();
    // A host of another listener is not served through this one, whatever TLS that one has.
    const other = await get(port, "abc.example.com", { ...trusted(), servername: "example.org" });
    assert.equal(statusOf(other), 421);
  });

  test("a plaintext connection does not bypass the TLS that a reload has added to its port", async () => {
    const plain = { name: "l", routes: [answering("plain")] };
    await using gateway = await LocalGateway.start(bind(plain));
    const [first, second] = [await RawPeer.connect(gateway.port()), await RawPeer.connect(gateway.port())];
    first.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    assert.equal((await first.message()).body, "plain");
    await gateway.reconfigure(bind(https("l", "example.org", { root: ca.certFile })));
    for (const peer of [first, second]) {
      peer.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
      const answer = await peer.message();
      assert.equal(statusOf(answer), 421);
      assert.deepEqual(valuesOf(answer, "connection"), ["close"]);
      peer.socket.destroy();
    }
  });

  test("a reload that keeps the TLS of a listener keeps its sessions; one that changes it lets open connections finish", async () => {
    const renewed = ca.issue("example.org");
    await using upstream = await RawUpstream.listen();
    const slow = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    const steady = https("steady", "second-example.org");
    await using gateway = await LocalGateway.start(bind(https("changing", "example.org", {}, slow), steady));
    const port = gateway.port();
    const session = await sessionOf(port, { ...trusted(), servername: "second-example.org" });
    const kept = await tlsConnect(port, { ...trusted(), servername: "second-example.org" });
    const busy = await tlsConnect(port, { ...trusted(), servername: "example.org" });
    busy.peer.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    const backend = await upstream.connection();
    await backend.message();

    const changed = https("changing", "example.org", { cert: renewed.certFile, key: renewed.keyFile }, slow);
    await gateway.reconfigure(bind(changed, steady));
    backend.send(reply("done"));
    const answer = await busy.peer.message();
    assert.equal(answer.body, "done");
    assert.deepEqual(valuesOf(answer, "connection"), ["close"]);
    kept.peer.send("GET / HTTP/1.1\r\nHost: second-example.org\r\n\r\n");
    const unchanged = await kept.peer.message();
    assert.equal(unchanged.body, "steady");
    assert.deepEqual(valuesOf(unchanged, "connection"), []);
    const resumed = await tlsConnect(port, { ...trusted(), servername: "second-example.org", session });
    assert.ok(resumed.socket.isSessionReused());
    for (const { socket } of [kept, busy, resumed]) socket.destroy();
  });
});

/** A session that the server allows to resume. */
async function sessionOf(port: number, options: ConnectionOptions): Promise<Buffer> {
  const { peer, socket } = await tlsConnect(port, options);
  const session = new Promise<Buffer>((resolve) => socket.once("session", resolve));
  // With TLS 1.2 it has arrived with the handshake.
  const known = (socket as TLSSocket).getProtocol() === "TLSv1.2" ? socket.getSession() : undefined;
  peer.send(`GET / HTTP/1.1\r\nHost: ${options.servername}\r\n\r\n`);
  await peer.message();
  const got = known ?? (await session);
  socket.destroy();
  return got;
}
