import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import { brotliDecompressSync, createGunzip, gunzipSync, zstdDecompressSync } from "node:zlib";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { queueOf, RawPeer, RawUpstream, reply, settled, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const DECODERS = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync } as const;
const SHORT = "a short page ".repeat(200);
const LONG = Array.from({ length: 30_000 }, (_, i) => `line ${i * 7919}`).join("\n");

let upstream: RawUpstream;
let gateway: LocalGateway;
/** Takes a connection whose response the test itself sends. */
let heldBack: ((peer: RawPeer) => void) | undefined;

before(async () => {
  upstream = await RawUpstream.listen(async (peer) => {
    for (;;) {
      const { start } = await peer.message();
      const [, path = ""] = start.split(" ");
      if (path === "/short") peer.send(reply(SHORT, ["Content-Type: text/html", 'ETag: "1"']));
      else if (path === "/long") peer.send(reply(LONG, ["Content-Type: text/plain"]));
      else if (path === "/medium") peer.send(reply(LONG.slice(0, 40_000), ["Content-Type: text/plain"]));
      else if (path === "/empty") peer.send(reply("", ["Content-Type: text/plain"]));
      else if (path === "/json") peer.send(reply(`{"a":"${"b".repeat(2000)}"}`, ["Content-Type: application/json"]));
      else {
        heldBack?.(peer);
        return;
      }
    }
  });
  const backends = [{ host: `127.0.0.1:${upstream.port}` }];
  const compression = { contentTypes: ["text/*", "text/event-stream", "application/json"] };
  const routes = [
    {
      matches: [{ path: { pathPrefix: "/json" } }],
      policies: { compression },
      backends: [{ ...backends[0], policies: { transformations: { response: { body: "json(response.body).a" } } } }],
    },
    { matches: [{ path: { pathPrefix: "/direct" } }], policies: { compression, directResponse: direct() } },
    { policies: { compression, requestHeaderModifier: { remove: ["accept-encoding"] } }, backends },
  ];
  gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
});

function direct() {
  const headers = { "content-type": "'text/plain'" };
  return { status: 200, body: SHORT, headers };
}

/** Sends a request, and returns both ends once the backend has it. */
async function open(encoding: string, paused = false): Promise<{ client: RawPeer; backend: RawPeer }> {
  const client = await RawPeer.connect(gateway.port());
  if (paused) client.socket.pause();
  const backend = new Promise<RawPeer>((resolve) => {
    heldBack = resolve;
  });
  client.send(`GET /held HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ${encoding}\r\n\r\n`);
  return { client, backend: await backend };
}

/** A response as it arrived on the wire. */
async function get(
  path: string,
  encoding: string,
  method = "GET",
): Promise<{ response: IncomingMessage; body: Buffer }> {
  const options = { port: gateway.port(), path, method, agent: false, headers: { "accept-encoding": encoding } };
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    httpRequest(options, resolve).on("error", reject).end(),
  );
  return { response, body: Buffer.concat(await response.toArray()) };
}

test("every encoding yields the same body; short bodies keep a length, long ones are streamed", async () => {
  for (const [encoding, decode] of Object.entries(DECODERS)) {
    const short = await get("/short", encoding);
    assert.equal(short.response.headers["content-encoding"], encoding);
    assert.equal(Number(short.response.headers["content-length"]), short.body.length);
    assert.equal(short.response.headers.etag, 'W/"1"');
    assert.equal(decode(short.body).toString(), SHORT);
    const long = await get("/long", encoding);
    assert.equal(long.response.headers["content-encoding"], encoding);
    assert.equal(long.response.headers["content-length"], undefined);
    assert.ok(long.body.length < LONG.length / 2, encoding);
    assert.equal(decode(long.body).toString(), LONG);
  }
});

test("clients without the encoding, HEAD and empty bodies get no compressed body", async () => {
  const plain = await get("/long", "deflate");
  assert.equal(plain.body.toString(), LONG);
  assert.equal(plain.response.headers.vary, "accept-encoding");
  const head = await get("/long", "gzip", "HEAD");
  assert.equal(head.response.headers["content-encoding"], "gzip");
  assert.equal(head.response.headers["content-length"], undefined);
  assert.equal(head.body.length, 0);
  assert.equal((await get("/empty", "gzip")).response.headers["content-encoding"], undefined);
});

test("policies of the backend see the body before it is compressed; the gateway's own responses are compressed too", async () => {
  const { response, body } = await get("/json", "gzip");
  assert.equal(response.headers["content-encoding"], "gzip");
  assert.equal(gunzipSync(body).toString(), "b".repeat(2000));
  assert.equal(gunzipSync((await get("/direct", "gzip")).body).toString(), SHORT);
});

test("each event reaches the client before the backend sends the next", async () => {
  const { client, backend } = await open("gzip");
  backend.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  await client.take("\r\n\r\n");
  const gunzip = createGunzip();
  let text = "";
  gunzip.on("data", (bytes: Buffer) => {
    text += bytes.toString();
  });
  for (const event of ["first", "second", "third"]) {
    backend.send(`${(event.length + 2).toString(16)}\r\n${event}\n\n\r\n`);
    while (!text.endsWith(`${event}\n\n`)) {
      const size = Number.parseInt(await client.take("\r\n"), 16);
      await client.until(() => client.received.length >= size + 2, "a chunk");
      await new Promise((resolve) => gunzip.write(Buffer.from(client.received.slice(0, size), "latin1"), resolve));
      client.received = client.received.slice(size + 2);
      await new Promise(setImmediate);
    }
  }
  assert.equal(text, "first\n\nsecond\n\nthird\n\n");
  client.socket.destroy();
  backend.socket.destroy();
});

test("a client that does not read pauses the backend, and gets everything when it reads again", async () => {
  const { client, backend } = await open("zstd", true);
  // More than the systems between both ends buffer, and hardly compressible.
  const flood = randomBytes(12_000_000).toString("base64");
  backend.send(reply(flood, ["Content-Type: text/plain"]));
  await settled(() => queueOf(backend));
  assert.ok(queueOf(backend) > 4_000_000, `${queueOf(backend)} bytes wait at the backend`);
  client.socket.resume();
  const message = await client.message();
  assert.equal(statusOf(message), 200);
  assert.deepEqual(valuesOf(message, "content-encoding"), ["zstd"]);
  assert.ok(zstdDecompressSync(Buffer.from(message.body, "latin1")).equals(Buffer.from(flood)));
  client.socket.destroy();
  backend.socket.destroy();
});

test("if a backend breaks off, the client cannot mistake the response for a complete one", async () => {
  const { client, backend } = await open("br");
  backend.send(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n${"x".repeat(30_000)}`);
  await client.take("\r\n\r\n");
  backend.reset();
  await client.closed();
  assert.ok(!client.received.includes("\r\n0\r\n"), "no last chunk");
});

test("a short body for which the gateway has no memory left is compressed as it arrives", async () => {
  const body = SHORT.repeat(10);
  let complete = (): void => {};
  const released = new Promise<void>((resolve) => {
    complete = resolve;
  });
  await using slow = await RawUpstream.listen(async (peer) => {
    await peer.message();
    const response = reply(body, ["Content-Type: text/plain"]);
    peer.send(response.slice(0, -1));
    await released;
    peer.send(response.slice(-1));
  });
  const routes = [{ policies: { compression: {} }, backends: [{ host: `127.0.0.1:${slow.port}` }] }];
  await using full = await LocalGateway.start({
    frontendPolicies: { http: { maxBufferedBytes: 10_000 } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  });
  const headers = { "accept-encoding": "gzip" };
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    httpRequest({ port: full.port(), headers, agent: false }, resolve).on("error", reject).end(),
  );
  assert.deepEqual([response.statusCode, response.headers["content-encoding"]], [200, "gzip"]);
  complete();
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  assert.equal(gunzipSync(Buffer.concat(chunks)).toString(), body);
});

test("encoders are released with their responses: many in a row do not exhaust their memory", async () => {
  for (let i = 0; i < 60; i++)
    assert.equal((await get("/medium", "br")).response.headers["content-encoding"], "br", `response ${i}`);
});
