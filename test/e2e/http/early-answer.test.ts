import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { queueOf, RawPeer, RawUpstream, reply, settled, statusOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";
import { END_STREAM, HEADERS, RawFrames } from "../upstream-h2/frames.ts";
import { gatewayTo } from "../upstream-h2/support.ts";

const SIZE = 100_000_000;
const POST = `POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: ${SIZE}\r\n\r\n`;
const PIECE = Buffer.alloc(60_000, "x");
const STATUS = "413 Content Too Large";
const LONG = "too much, ".repeat(3000);

const ANSWERS = {
  "a length": reply(LONG, [], STATUS),
  chunks: `HTTP/1.1 ${STATUS}\r\nTransfer-Encoding: chunked\r\n\r\n${LONG.length.toString(16)}\r\n${LONG}\r\n0\r\n\r\n`,
} as const;

/** The gateway has the client's next bytes before the end of the upstream's connection, and fails to write them. */
function answerAndLeave(client: RawPeer, peer: RawPeer, answer: string, leave: () => void): void {
  client.send(PIECE);
  peer.send(answer);
  leave();
}

for (const [framing, answer] of Object.entries(ANSWERS))
  for (const how of ["resets", "closes"] as const)
    test(`the response of an upstream that responds early and ${how} is forwarded completely: ${framing}`, async () => {
      await using upstream = await RawUpstream.listen();
      await using plane = await TestPlane.start(upstream.port);
      const client = await RawPeer.connect(plane.port);
      client.send(POST);
      const peer = await upstream.connection();
      await peer.take("\r\n\r\n");
      answerAndLeave(client, peer, answer, () => (how === "resets" ? peer.reset() : peer.socket.destroy()));
      const response = await client.message();
      assert.equal(statusOf(response), 413);
      assert.equal(response.body, LONG);
      assert.equal((await plane.logged("/it"))["http.status"], 413);
      assert.equal((await plane.logged("/it")).error, undefined);
    });

test("an early response delimited by the close is complete only if the upstream ended it", async () => {
  for (const whole of [true, false]) {
    await using upstream = await RawUpstream.listen();
    await using plane = await TestPlane.start(upstream.port);
    const client = await RawPeer.connect(plane.port);
    client.send(POST);
    const peer = await upstream.connection();
    await peer.take("\r\n\r\n");
    // If bytes are unread when the connection closes, the system resets it.
    peer.socket.pause();
    answerAndLeave(client, peer, `HTTP/1.1 ${STATUS}\r\n\r\nenough`, () => {
      if (whole) peer.socket.end(() => peer.socket.destroy());
      else peer.reset();
    });
    const head = await client.take("\r\n\r\n");
    assert.match(head, /413/);
    if (whole) assert.equal(await client.take("0\r\n\r\n"), "6\r\nenough\r\n0\r\n\r\n");
    else {
      await client.closed();
      assert.ok(!client.received.includes("0\r\n\r\n"), client.received);
      assert.match(String((await plane.logged("/it")).error), /^upstream call failed/);
    }
  }
});

test("an upstream that resets without a response is 503", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(POST);
  const peer = await upstream.connection();
  await peer.take("\r\n\r\n");
  answerAndLeave(client, peer, "", () => peer.reset());
  const response = await client.message();
  assert.equal(statusOf(response), 503);
  assert.equal(response.body, "upstream call failed");
  const { error } = await plane.logged("upstream call failed");
  assert.match(String(error), /^upstream call failed: (read|write) (ECONNRESET|EPIPE)$/);
});

test("the early response of an upstream behind TLS is forwarded completely", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const { cert, key } = ca.issue("localhost");
  const server = createTlsServer({ cert, key, allowHalfOpen: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const target = { type: "static", host: "127.0.0.1", port: (server.address() as AddressInfo).port } as const;
  const backendTLS = { insecure: true, insecureHost: true };
  await using plane = await TestPlane.start([{ target, backendPolicies: { backendTLS } }]);
  const client = await RawPeer.connect(plane.port);
  client.send(POST);
  const [socket] = (await once(server, "secureConnection")) as [TLSSocket];
  const peer = new RawPeer(socket);
  await peer.take("\r\n\r\n");
  answerAndLeave(client, peer, ANSWERS["a length"], () => socket.destroy());
  const response = await client.message();
  assert.equal(statusOf(response), 413);
  assert.equal(response.body, LONG);
  server.close();
});

test("a client that sends far more than the gateway discards before it reads gets the response", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.take("\r\n\r\n");
    peer.send(reply("enough", [], STATUS));
  });
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(POST);
  client.socket.pause();
  for (let sent = 0; sent < SIZE / 2; sent += PIECE.length) client.send(PIECE);
  await (await upstream.connection()).closed();
  // The rest is not read: what waits at the client stops changing.
  await settled(() => queueOf(client));
  // The system's buffers on the way may have grown to tens of megabytes.
  assert.ok(queueOf(client) > SIZE / 50);
  assert.equal(client.ended, undefined);
  client.socket.resume();
  const response = await client.message();
  assert.equal(statusOf(response), 413);
  assert.equal(response.body, "enough");
  await client.closed();
});

test("after an early response, the small rest of a body that waited for the upstream is discarded, and the next request is served", async () => {
  const KIB = 1024;
  await using upstream = await RawUpstream.listen();
  await using plane = await gatewayTo(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${180 * KIB}\r\n\r\n`);
  client.send(Buffer.alloc(140 * KIB));
  const backend = new RawFrames(await upstream.connection());
  await backend.greet();
  const first = await backend.next(HEADERS);
  // The window of the backend and what the gateway keeps for it are full then.
  await until(() => bytesReceived(plane) >= 128 * KIB, "the body to wait");
  backend.respond(first.stream, {}, END_STREAM);
  assert.equal(statusOf(await client.message()), 200);
  client.send(Buffer.alloc(40 * KIB));
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const second = await backend.next(HEADERS);
  backend.respond(second.stream, {}, END_STREAM);
  assert.equal(statusOf(await client.message()), 200);
  client.reset();
});

/** Of the only request in progress. */
function bytesReceived({ plane }: TestPlane): number {
  const [{ connections } = { connections: [] }] = plane.tasks() as { connections: { exchange?: object }[] }[];
  const { bytesReceived = 0 } = (connections[0]?.exchange ?? {}) as { bytesReceived?: number };
  return bytesReceived;
}

test("after an early response, a body that stops arriving causes no second response", async () => {
  await using upstream = await RawUpstream.listen(async (peer) => {
    await peer.take("\r\n\r\n");
    peer.send(reply("enough"));
  });
  await using plane = await TestPlane.start(upstream.port, { frontend: { streamIdleTimeout: 50 } });
  const client = await RawPeer.connect(plane.port);
  client.send("POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin");
  assert.equal((await client.message()).body, "enough");
  assert.equal(await client.closed(), "end");
  assert.equal(client.received, "");
  assert.equal(plane.lines.length, 1, plane.lines.join(""));
  client.end();
});
