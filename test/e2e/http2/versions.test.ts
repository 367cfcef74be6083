import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { connect as tlsConnect } from "node:tls";
import { PREFACE, SETTINGS } from "../../../src/http/h2/frames.ts";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { frame, H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";
import { logged, metric } from "../tls/support.ts";
import { NodeClient } from "./support.ts";

const routes = [{ policies: { directResponse: { status: 200, body: "here" } } }];
const plaintext = { binds: [{ port: 0, listeners: [{ routes }] }] };
const GET = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

test("one port serves both versions, and the log says which", async () => {
  await using gateway = await LocalGateway.start(plaintext);
  await using client = await NodeClient.connect(gateway.port());
  assert.equal((await client.fetch()).body, "here");
  const old = await RawPeer.connect(gateway.port());
  old.send(GET);
  assert.equal((await old.message()).body, "here");
  old.end();
  await logged(gateway, { scope: "request", "http.version": "HTTP/2", "http.status": 200 });
  await logged(gateway, { scope: "request", "http.version": "HTTP/1.1", "http.status": 200 });
  // Whichever version it begins with, a connection counts once.
  assert.equal(await metric(gateway, "downstream_connections_total"), 2);
});

test("a preface may come in pieces", async () => {
  await using gateway = await LocalGateway.start(plaintext);
  const peer = await RawPeer.connect(gateway.port());
  const bytes = Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, Buffer.alloc(0))]);
  for (const byte of bytes) {
    peer.send(Buffer.of(byte));
    await new Promise(setImmediate);
  }
  const client = new H2Client(peer);
  client.request(1);
  assert.equal((await client.response(1)).body, "here");
  peer.socket.destroy();
});

test("an incomplete preface is an incomplete head: 408", async () => {
  const frontendPolicies = { http: { headerReadTimeout: "50ms" } };
  await using gateway = await LocalGateway.start({ ...plaintext, frontendPolicies });
  const peer = await RawPeer.connect(gateway.port());
  peer.send("PRI * HTTP/2.0\r\n");
  assert.equal(statusOf(await peer.message()), 408);
});

test("a first line that is not a request line of HTTP gets 400", async () => {
  await using gateway = await LocalGateway.start(plaintext);
  for (const line of [
    ...["GET / HTTX/1.1", "GET / FTP/1.1", "INVALID FIRST LINE", "get", "EHLO mail.example", "GET /a b HTTP/1.1"],
    ...["GET / http/1.1", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", "PRI * HTTX/2.0", "\x16\x03\x01\x02\x00"],
  ]) {
    const peer = await RawPeer.connect(gateway.port());
    peer.send(Buffer.from(`${line}\r\nHost: a\r\n\r\n`, "latin1"));
    assert.equal(statusOf(await peer.message()), 400, line);
    await peer.closed();
  }
  await logged(gateway, { scope: "request", level: "info", "http.status": 400 });
  // What h2spec sends as a wrong preface: without any field, it is closed, because a response would look like a frame.
  const preface = await RawPeer.connect(gateway.port());
  preface.send("INVALID CONNECTION PREFACE\r\n\r\n");
  await preface.closed();
  assert.equal(preface.received.length, 0);
  const wrong = await RawPeer.connect(gateway.port());
  wrong.send("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
  const client = new H2Client(wrong);
  await client.closed();
  assert.deepEqual(client.goAways, ["0, PROTOCOL_ERROR"]);
});

test("the preface is accepted only at the beginning of a connection", async () => {
  await using gateway = await LocalGateway.start(plaintext);
  const peer = await RawPeer.connect(gateway.port());
  peer.send(GET);
  await peer.message();
  peer.send(PREFACE);
  assert.equal(statusOf(await peer.message()), 505);
});

suite("inside TLS", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let identity: Identity;

  before(() => {
    ca = new TestCa();
    identity = ca.issue("a.example", "b.example");
  });
  after(() => ca[Symbol.dispose]());

  const config = (alpn?: readonly unknown[]): object => ({
    ...(alpn !== undefined && { frontendPolicies: { tls: { alpn } } }),
    binds: [
      {
        port: 0,
        listeners: [{ protocol: "HTTPS", tls: { cert: identity.certFile, key: identity.keyFile }, routes }],
      },
    ],
  });

  /** What the gateway chooses of these protocols; undefined when the handshake fails. */
  const agreed = (port: number, ALPNProtocols?: string[]): Promise<string | false | null | undefined> =>
    new Promise((resolve) => {
      const options = { port, host: "127.0.0.1", servername: "a.example", ca: ca.cert };
      const socket = tlsConnect({ ...options, ...(ALPNProtocols !== undefined && { ALPNProtocols }) }, () => {
        resolve(socket.alpnProtocol);
        socket.destroy();
      });
      socket.on("error", () => resolve(undefined));
    });

  test("ALPN selects HTTP/2, or HTTP/1.1 for clients that offer only that", async () => {
    await using gateway = await LocalGateway.start(config());
    const port = gateway.port();
    assert.equal(await agreed(port, ["http/1.1", "h2"]), "h2");
    assert.equal(await agreed(port, ["http/1.1"]), "http/1.1");
    assert.equal(await agreed(port), false);
    assert.equal(await agreed(port, ["h3"]), undefined);
    await using client = await NodeClient.connect(port, { ca: ca.cert, servername: "a.example" });
    assert.equal((await client.fetch({ ":authority": "a.example" })).body, "here");
    await logged(gateway, { scope: "request", "http.version": "HTTP/2", protocol: "http" });
  });

  test("the configuration chooses what is offered, as names or as their bytes", async () => {
    await using gateway = await LocalGateway.start(config(["http/1.1"]));
    assert.equal(await agreed(gateway.port(), ["h2", "http/1.1"]), "http/1.1");
    assert.equal(await agreed(gateway.port(), ["h2"]), undefined);
    await gateway.reconfigure(config([[104, 50]]));
    assert.equal(await agreed(gateway.port(), ["http/1.1", "h2"]), "h2");
  });

  test("a request for another listener's host is 421 on a connection that a client shares between hosts", async () => {
    const tls = { cert: identity.certFile, key: identity.keyFile };
    const listener = (hostname: string): object => ({ name: hostname[0], hostname, protocol: "HTTPS", tls, routes });
    await using gateway = await LocalGateway.start({
      binds: [{ port: 0, listeners: [listener("a.example"), listener("b.example")] }],
    });
    await using client = await NodeClient.connect(gateway.port(), { ca: ca.cert, servername: "a.example" });
    const statuses = await Promise.all(
      ["a.example", "b.example", "c.example"].map(async (host) => (await client.fetch({ ":authority": host })).status),
    );
    assert.deepEqual(statuses, [200, 421, 404]);
  });
});

test("an HTTP/1.1 backend gets the same message from both versions", async () => {
  await using upstream = await RawUpstream.answering((request) => reply([request.start, ...request.fields].join("|")));
  const backends = [{ host: `127.0.0.1:${upstream.port}`, policies: { http: { version: "HTTP/1.1" } } }];
  await using gateway = await LocalGateway.start({
    frontendPolicies: { http: { forwarded: { mode: "off" }, requestId: { mode: "off" } } },
    binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }],
  });
  const client = await H2Client.connect(gateway.port());
  client.headers(1, [
    ...[":method", "GET", ":scheme", "https", ":path", "/p?q", ":authority", "a.example:81"],
    ...["cookie", "a=1", "accept", "*/*", "cookie", "b=2", "te", "trailers"],
  ]);
  const { body } = await client.response(1);
  const old = await RawPeer.connect(gateway.port());
  old.send("GET /p?q HTTP/1.1\r\nHost: a.example:81\r\nCookie: a=1; b=2\r\nAccept: */*\r\nTE: trailers\r\n\r\n");
  assert.equal(body, (await old.message()).body);
  old.end();
  client.peer.socket.destroy();
});
