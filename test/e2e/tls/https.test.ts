import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { Duplex } from "node:stream";
import { after, before, suite, test } from "node:test";
import { connect } from "node:tls";
import { sockets } from "../../../src/net/node-internals.ts";
import { DAMAGED_RECORD, type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { refusedStart, TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { get, logged, metric, NO_RESPONSE, tlsConnect } from "./support.ts";

interface ListenerOptions {
  readonly tls?: object;
  readonly body?: string;
  readonly routes?: object[];
}

suite("HTTPS listeners", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let one: Identity;
  let wild: Identity;

  before(() => {
    ca = new TestCa();
    one = ca.issue("one.host.example");
    wild = ca.issue("*.host.example", "*.sub.host.example", "other.test");
  });
  after(() => ca[Symbol.dispose]());

  const listener = (
    name: string,
    hostname: string,
    { certFile, keyFile }: Identity,
    options: ListenerOptions = {},
  ) => ({
    name,
    hostname,
    protocol: "HTTPS",
    tls: { cert: certFile, key: keyFile, ...options.tls },
    routes: options.routes ?? [{ policies: { directResponse: { status: 200, body: options.body ?? name } } }],
  });
  const bind = (...listeners: object[]): object => ({ binds: [{ port: 0, listeners }] });
  const trusted = () => ({ ca: ca.cert });

  test("a large request reaches the backend and its large response the client, both complete", async () => {
    const large = "x".repeat(300_000);
    await using upstream = await RawUpstream.answering((request) => reply(request.body + large));
    const routes = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one, { routes })));
    const { peer, socket } = await tlsConnect(gateway.port(), { ...trusted(), servername: "one.host.example" });
    for (let round = 0; round < 2; round++) {
      peer.send(`POST / HTTP/1.1\r\nHost: one.host.example\r\nContent-Length: ${large.length}\r\n\r\n${large}`);
      const answer = await peer.message();
      assert.equal(statusOf(answer), 200);
      assert.equal(answer.body, large + large);
    }
    assert.equal(socket.getProtocol(), "TLSv1.3");
    peer.socket.destroy();
    await logged(gateway, { scope: "request", listener: "one", "http.status": 200, protocol: "http" });
    const labels = ['listener="one"', 'protocol="https"'];
    assert.equal(await metric(gateway, "downstream_connections_total", ...labels), 1);
    assert.equal(await metric(gateway, "tls_handshake_duration_seconds_count", ...labels), 1);
  });

  test("the server name chooses the listener: exact, then the longest wildcard, then any", async () => {
    await using gateway = await LocalGateway.start(
      bind(
        listener("short", "*.host.example", wild),
        listener("exact", "one.host.example", one),
        listener("long", "*.sub.host.example", wild),
        listener("any", "", wild),
      ),
    );
    const port = gateway.port();
    assert.equal((await get(port, "one.host.example", trusted())).body, "exact");
    assert.equal((await get(port, "ONE.host.example", trusted())).body, "exact");
    assert.equal((await get(port, "two.host.example", trusted())).body, "short");
    assert.equal((await get(port, "two.sub.host.example", trusted())).body, "long");
    assert.equal((await get(port, "other.test", trusted())).body, "any");
    const { peer, socket } = await tlsConnect(port, { ...trusted(), servername: "one.host.example" });
    assert.equal(socket.getPeerCertificate().subject.CN, "one.host.example");
    socket.destroy();
    peer.socket.destroy();
  });

  test("a client whose server name matches no listener gets no response, and the log says so", async () => {
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one)));
    await assert.rejects(get(gateway.port(), "two.host.example", trusted()), { code: "ECONNRESET" });
    await logged(gateway, { message: "rejected", error: "no TLS listener match for two.host.example" });
  });

  test("a connection without TLS is closed at once", async () => {
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one)));
    const peer = await RawPeer.connect(gateway.port());
    peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\n\r\n");
    await peer.closed();
    assert.equal(peer.received, "");
    await logged(gateway, { message: "rejected", error: "not a TLS handshake" });
  });

  test("clients that leave during the handshake are released at once", async () => {
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one)));
    const silent = await RawPeer.connect(gateway.port());
    silent.end();
    await silent.closed();
    const partial = await RawPeer.connect(gateway.port());
    partial.send(Buffer.of(22, 3, 1, 1, 0, 1));
    partial.reset();
    // A client that ends inside the handshake event has not sent its own last message.
    const socket = connect({ host: "127.0.0.1", port: gateway.port(), servername: "one.host.example", ca: ca.cert });
    socket.once("secureConnect", () => socket.destroy());
    await once(socket, "close");
    await logged(gateway, { message: "rejected", error: "the connection closed during the handshake" });
    await logged(gateway, { message: "rejected", error: "read ECONNRESET" });
    await logged(gateway, {
      message: "rejected",
      error: "TLS handshake failed: the connection closed during the handshake",
    });
    assert.deepEqual(gateway.tasks()[0]?.connections, []);
  });

  test("the log says why a client's certificate was rejected", async () => {
    using other = new TestCa("other CA");
    const strict = listener("one", "one.host.example", one, { tls: { root: ca.certFile } });
    await using gateway = await LocalGateway.start(bind(strict));
    const rejected = [
      [ca.issueExpired("client.example"), "CERT_HAS_EXPIRED"],
      [other.issue("client.example"), "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"],
    ] as const;
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const)
      for (const [{ cert, key }, code] of rejected) {
        gateway.takeLines();
        await assert.rejects(get(gateway.port(), "one.host.example", { ...trusted(), maxVersion, cert, key }));
        const error = `TLS handshake failed: the client's certificate was rejected: ${code}`;
        await logged(gateway, { message: "rejected", error });
      }
  });

  test("root may be an intermediate CA: clients with a certificate of it are accepted, others of the CA above are not", async () => {
    const intermediate = ca.issueCa("intermediate");
    const strict = listener("one", "one.host.example", one, { tls: { root: intermediate.certFile } });
    await using gateway = await LocalGateway.start(bind(strict));
    const [below, beside] = [ca.issueBelow(intermediate, "client.example"), ca.issue("client.example")];
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const ask = ({ cert, key }: Identity) =>
        get(gateway.port(), "one.host.example", { ...trusted(), maxVersion, cert, key });
      assert.equal(statusOf(await ask(below)), 200);
      await assert.rejects(ask(beside));
    }
  });

  test("a client that sends a damaged record is disconnected", async () => {
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one)));
    const carrier = createConnection(gateway.port(), "127.0.0.1");
    const socket = connect({ socket: carrier, servername: "one.host.example", ...trusted() });
    const peer = new RawPeer(socket);
    await once(socket, "secureConnect");
    peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\n\r\n");
    await peer.message();
    carrier.write(DAMAGED_RECORD);
    await gateway.until(() => gateway.tasks()[0]?.connections.length === 0, "the end of the connection");
    socket.destroy();
  });

  test("clients that reset before the response to their last request is written are released at once", async () => {
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one)));
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const carrier = createConnection(gateway.port(), "127.0.0.1");
      const socket = connect({ socket: carrier, servername: "one.host.example", maxVersion, ...trusted() });
      await once(socket, "secureConnect");
      // The request is readable, and the write of the response fails at once.
      socket.write("GET / HTTP/1.1\r\nHost: one.host.example\r\nConnection: close\r\n\r\n");
      // Since Node 26, TLS writes at the end of the turn.
      await new Promise(setImmediate);
      carrier.resetAndDestroy();
      await gateway.until(() => gateway.lines.some((line) => line["http.status"] === 200), "the response");
      await gateway.until(() => gateway.tasks()[0]?.connections.length === 0, "the end of the connection");
      gateway.takeLines();
    }
  });

  test("a client whose reset no event reports is released, although it has not read its last response", async (t) => {
    const routes = [{ policies: { directResponse: { status: 200, body: "x".repeat(8_000_000) } } }];
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one, { routes })));
    const { peer } = await tlsConnect(gateway.port(), { ...trusted(), servername: "one.host.example" });
    peer.socket.pause();
    peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\nConnection: close\r\n\r\n");
    const states = () => gateway.tasks()[0]?.connections.map((each) => (each as { state: string }).state);
    await gateway.until(() => states()?.[0] === "linger", "the end of the response");
    // As after a reset with which TLS has lost the response.
    t.mock.method(sockets, "wasReset", () => true);
    await gateway.until(() => states()?.length === 0, "the end of the connection");
    peer.socket.destroy();
  });

  test("a redirect stays inside TLS", async () => {
    const routes = [{ policies: { requestRedirect: { path: { full: "/there" } } } }];
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one, { routes })));
    const answer = await get(gateway.port(), "one.host.example", trusted());
    assert.deepEqual(valuesOf(answer, "location"), ["https://one.host.example/there"]);
  });

  test("a ClientHello that arrives byte by byte is read", async () => {
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one)));
    const raw = await RawPeer.connect(gateway.port());
    raw.socket.removeAllListeners("data");
    const trickle = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        for (const byte of chunk) raw.socket.write(Buffer.of(byte));
        done();
      },
    });
    raw.socket.on("data", (bytes: Buffer) => trickle.push(bytes));
    const { peer } = await tlsConnect(0, { ...trusted(), servername: "one.host.example", socket: trickle });
    peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\n\r\n");
    assert.equal((await peer.message()).body, "one");
    raw.socket.destroy();
  });

  test("a request for another listener of the port gets 421; one for no listener gets 404", async () => {
    await using gateway = await LocalGateway.start(
      bind(listener("one", "one.host.example", one), listener("wild", "*.host.example", wild)),
    );
    const { peer } = await tlsConnect(gateway.port(), { ...trusted(), servername: "two.host.example" });
    const ask = async (host: string): Promise<[number, string]> => {
      peer.send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      const answer = await peer.message();
      return [statusOf(answer), answer.body];
    };
    assert.deepEqual(await ask("three.host.example"), [200, "wild"]);
    assert.deepEqual(await ask("one.host.example"), [421, "misdirected request"]);
    assert.deepEqual(await ask("nobody.test"), [404, "route not found"]);
    peer.socket.destroy();
  });

  test("a listener with a client CA accepts only clients with a certificate of that CA", async () => {
    using other = new TestCa("other CA");
    const client = ca.issue("client");
    const stranger = other.issue("client");
    const strict = listener("one", "one.host.example", one, { tls: { root: ca.certFile } });
    await using gateway = await LocalGateway.start(bind(strict, listener("open", "two.host.example", wild)));
    const port = gateway.port();
    const identity = ({ cert, key }: Identity) => ({ ...trusted(), cert, key });
    assert.equal((await get(port, "one.host.example", identity(client))).body, "one");
    await assert.rejects(get(port, "one.host.example", trusted()), NO_RESPONSE);
    await assert.rejects(get(port, "one.host.example", identity(stranger)), NO_RESPONSE);
    assert.equal((await get(port, "two.host.example", trusted())).body, "open");
    await gateway.until(
      () => gateway.lines.filter((line) => String(line.error).startsWith("TLS handshake failed")).length === 2,
      "both refusals in the log",
    );
    // A connection without a certificate cannot reach the listener by its Host either.
    const { peer } = await tlsConnect(port, { ...trusted(), servername: "two.host.example" });
    peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\n\r\n");
    assert.equal(statusOf(await peer.message()), 421);
    peer.socket.destroy();
  });

  test("versions and cipher suites are those of the listener", async () => {
    const suites = { maxTLSVersion: "TLS_V1_2", cipherSuites: ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"] };
    await using gateway = await LocalGateway.start(
      bind(
        listener("new", "one.host.example", one, { tls: { minTLSVersion: "TLS_V1_3" } }),
        listener("old", "two.host.example", wild, { tls: suites }),
      ),
    );
    const port = gateway.port();
    await assert.rejects(get(port, "one.host.example", { ...trusted(), maxVersion: "TLSv1.2" }), {
      code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
    });
    const { socket } = await tlsConnect(port, { ...trusted(), servername: "two.host.example" });
    assert.equal(socket.getProtocol(), "TLSv1.2");
    assert.equal(socket.getCipher().name, "ECDHE-ECDSA-AES128-GCM-SHA256");
    socket.destroy();
  });

  test("a reload gives new connections the new certificate and open ones the new routes", async () => {
    const renewed = ca.issue("one.host.example");
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one)));
    const port = gateway.port();
    const options = { ...trusted(), servername: "one.host.example" };
    const { peer, socket } = await tlsConnect(port, options);
    const serial = socket.getPeerCertificate().serialNumber;
    await gateway.reconfigure(bind(listener("one", "one.host.example", renewed, { body: "two" })));
    peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\n\r\n");
    const answer = await peer.message();
    assert.equal(answer.body, "two");
    assert.deepEqual(valuesOf(answer, "connection"), ["close"], "its TLS has changed");
    peer.socket.destroy();
    const next = await tlsConnect(port, options);
    assert.notEqual(next.socket.getPeerCertificate().serialNumber, serial);
    // A connection without a client certificate does not survive a reload that requires one.
    const strict = listener("one", "one.host.example", renewed, { tls: { root: ca.certFile } });
    await gateway.reconfigure(bind(strict));
    next.peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\n\r\n");
    assert.equal(statusOf(await next.peer.message()), 421);
    next.peer.socket.destroy();
  });

  test("a reload with a key that does not match is rejected with the position and the file", async () => {
    await using gateway = await TestGateway.start(bind(listener("one", "one.host.example", one)));
    const mixed = listener("one", "one.host.example", { ...one, keyFile: wild.keyFile });
    assert.equal(await gateway.reconfigure(bind(mixed)), "rejected");
    assert.equal((await get(gateway.port(), "one.host.example", trusted())).body, "one");
    const text = JSON.stringify(gateway.lines);
    assert.match(
      text,
      /gateway\.yaml:\d+:\d+: error: binds\[0\]\.listeners\[0\]\.tls\.key: \S+\.key: the private key does not belong/,
    );
  });

  test("an expired certificate does not replace one by a reload, and does not block other changes where it is in use", async () => {
    const [served, another] = [ca.issueExpired("one.host.example"), ca.issueExpired("one.host.example")];
    // A start has nothing better.
    await using gateway = await TestGateway.start(bind(listener("one", "one.host.example", served)));
    assert.match(JSON.stringify(gateway.lines), /warn.*tls\.cert: \S+: the certificate expired at/);
    assert.equal(
      await gateway.reconfigure(bind(listener("one", "one.host.example", served, { body: "two" }))),
      "applied",
    );
    assert.equal(await gateway.reconfigure(bind(listener("one", "one.host.example", another))), "rejected");
    const refused =
      /error: binds\[0\]\.listeners\[0\]\.tls\.cert: \S+: the certificate expired at 20[^,]*, clients will reject/;
    assert.match(JSON.stringify(gateway.lines), refused);
    assert.equal((await get(gateway.port(), "one.host.example", { rejectUnauthorized: false })).body, "two");
  });

  test("a certificate that is not valid yet does not replace a valid one, and is tried again", async () => {
    const early = ca.issueEarly("one.host.example");
    const message = /tls\.cert: \S+: the certificate is valid from 20[^,]*, clients will reject it until then/;
    await using gateway = await TestGateway.start(bind(listener("one", "one.host.example", one)));
    assert.doesNotMatch(JSON.stringify(gateway.lines), message);
    assert.equal(await gateway.reconfigure(bind(listener("one", "one.host.example", early))), "rejected");
    assert.match(JSON.stringify(gateway.lines), message);
    assert.equal((await get(gateway.port(), "one.host.example", trusted())).body, "one");
    const status = await (await fetch(`${gateway.url("admin")}/config/status`)).json();
    assert.notEqual((status as { nextRetryAt: unknown }).nextRetryAt, null);
    // A start has nothing better.
    await using other = await TestGateway.start(bind(listener("one", "one.host.example", early)));
    assert.match(JSON.stringify(other.lines.filter(({ level }) => level === "warn")), message);
  });

  test("changed certificate files are used for new connections; open ones continue", async () => {
    const [cert, key] = [`${ca.folder}/served.pem`, `${ca.folder}/served.key`];
    const put = async (identity: Identity): Promise<void> => {
      // Between the two writes they do not match, so a reload at that moment is rejected.
      await Promise.all([writeFile(cert, identity.cert), writeFile(key, identity.key)]);
    };
    await put(one);
    const files = { ...one, certFile: cert, keyFile: key };
    await using gateway = await TestGateway.start(bind(listener("one", "one.host.example", files)));
    const options = { ...trusted(), servername: "one.host.example" };
    const { peer, socket } = await tlsConnect(gateway.port(), options);
    const serial = socket.getPeerCertificate().serialNumber;
    await put(ca.issue("one.host.example"));
    await gateway.until(() => gateway.lines.some(({ message }) => message === "configuration reloaded"), "the reload");
    const next = await tlsConnect(gateway.port(), options);
    assert.notEqual(next.socket.getPeerCertificate().serialNumber, serial);
    next.socket.destroy();
    peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\n\r\n");
    assert.equal((await peer.message()).body, "one");
    peer.socket.destroy();
  });

  test("clients that request the certificate's status get the CA's OCSP response", async () => {
    const [rsa, ecdsa] = [ca.issueWith("rsa:2048", "two.host.example"), ca.issue("three.host.example")];
    const second = { cert: ecdsa.certFile, key: ecdsa.keyFile, ocspStaple: ca.staple(ecdsa) };
    const ocspStaple = ca.staple(rsa);
    const first = listener("all", "*.host.example", rsa, { tls: { ocspStaple, otherCertificates: [second] } });
    await using gateway = await LocalGateway.start(bind(first));
    const stapleFor = async (servername: string, options: object = {}): Promise<Buffer | null> => {
      const socket = connect({
        ...trusted(),
        host: "127.0.0.1",
        port: gateway.port(),
        servername,
        requestOCSP: true,
        ...options,
      });
      const [[response]] = await Promise.all([once(socket, "OCSPResponse"), once(socket, "secureConnect")]);
      socket.destroy();
      return response;
    };
    assert.deepEqual(await stapleFor("two.host.example"), await readFile(ocspStaple));
    assert.deepEqual(
      await stapleFor("three.host.example", { maxVersion: "TLSv1.2" }),
      await readFile(second.ocspStaple),
    );
  });

  test("a start with files that are not certificates fails and names every position", async () => {
    const empty = `${ca.folder}/empty.pem`;
    await writeFile(empty, "");
    const suites = { cipherSuites: ["TLS_RSA_WITH_RC4_128_MD5"] };
    const versions = { minTLSVersion: "TLS_V1_3", maxTLSVersion: "TLS_V1_2" };
    const error = await refusedStart(
      bind(
        listener("a", "a.host.example", { ...one, certFile: empty }),
        listener("b", "b.host.example", { ...one, keyFile: one.certFile }),
        listener("c", "c.host.example", one, { tls: { root: empty } }),
        listener("d", "d.host.example", one, { tls: suites }),
        listener("e", "e.host.example", one, { tls: versions }),
      ),
    );
    for (const place of [
      "0].tls.cert: ",
      "1].tls.key: ",
      "2].tls.root: ",
      "3].tls.cipherSuites[0]: ",
      "4].tls.minTLSV",
    ])
      assert.ok(error.includes(`binds[0].listeners[${place}`), `${place} in ${error}`);
  });

  test("a drain serves the request in progress and closes the connection", async () => {
    await using upstream = await RawUpstream.listen();
    const routes = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    await using gateway = await TestGateway.start(bind(listener("one", "one.host.example", one, { routes })));
    const { peer } = await tlsConnect(gateway.port(), { ...trusted(), servername: "one.host.example" });
    peer.send("GET / HTTP/1.1\r\nHost: one.host.example\r\n\r\n");
    const backend = await upstream.connection();
    await backend.message();
    const idle = await tlsConnect(gateway.port(), { ...trusted(), servername: "one.host.example" });
    const drained = gateway.drain();
    await idle.peer.closed();
    backend.send(reply("done"));
    const answer = await peer.message();
    assert.equal(answer.body, "done");
    assert.deepEqual(valuesOf(answer, "connection"), ["close"]);
    peer.end();
    await drained;
  });

  test("a body that the backend cuts off does not look complete", async () => {
    await using upstream = await RawUpstream.listen();
    const routes = [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
    await using gateway = await LocalGateway.start(bind(listener("one", "one.host.example", one, { routes })));
    const { peer } = await tlsConnect(gateway.port(), { ...trusted(), servername: "one.host.example" });
    peer.send("GET / HTTP/1.0\r\nHost: one.host.example\r\n\r\n");
    const backend = await upstream.connection();
    await backend.message();
    backend.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    await peer.take("half");
    backend.reset();
    assert.equal(await peer.closed(), "reset");
  });
});
