import assert from "node:assert/strict";
import { syncBuiltinESMExports } from "node:module";
import { type TestContext, test } from "node:test";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import { DRAIN_STEPS } from "../../../src/proxy/ports/drain.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/** More than the tests need. */
const DEADLINE_MS = 60_000;

test("a drain closes idle connections, lets busy ones finish and accepts no new ones", async () => {
  await using upstream = await RawUpstream.listen();
  // Idle connections do not wait for the sweeper.
  await using plane = await TestPlane.start(upstream.port, { sweepInterval: 600_000 });
  const busy = await RawPeer.connect(plane.port);
  busy.send(GET);
  const peer = await upstream.connection();
  await peer.message();
  const streaming = await RawPeer.connect(plane.port);
  streaming.send(GET);
  const other = await upstream.connection(1);
  await other.message();
  other.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
  await streaming.take("half");
  const idle = await RawPeer.connect(plane.port);
  // This connection may not have been accepted yet; it was opened before the drain, so the drain closes it too.
  let drained = false;
  const drain = plane.drain(DEADLINE_MS).then(() => {
    drained = true;
  });
  await idle.closed();
  await assert.rejects(RawPeer.connect(plane.port));
  peer.send(reply("answer"));
  const response = await busy.message();
  assert.equal(response.body, "answer");
  assert.deepEqual(valuesOf(response, "connection"), ["close"]);
  busy.end();
  assert.equal(drained, false);
  other.send("half");
  await streaming.take("half");
  assert.equal(await streaming.closed(), "end");
  streaming.end();
  await drain;
});

test("a bind that a reload removes is drained; a bind that stays keeps its connections", async () => {
  await using first = await RawUpstream.listen();
  await using second = await RawUpstream.answering(() => reply("second"));
  await using plane = await TestPlane.start(first.port);
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const peer = await first.connection();
  await peer.message();
  await plane.configure(second.port);
  peer.send(reply("first"));
  assert.equal((await client.message()).body, "first");
  assert.equal(await peer.closed(), "end");
  client.send(GET);
  assert.equal((await client.message()).body, "second");
  await plane.configure(undefined);
  await client.closed();
  await assert.rejects(RawPeer.connect(plane.port));
});

test("a response that a slow client is still reading survives a drain", async () => {
  const size = 3_000_000;
  await using upstream = await RawUpstream.answering(() => reply("x".repeat(size)));
  await using plane = await TestPlane.start(upstream.port);
  const client = await RawPeer.connect(plane.port);
  client.socket.pause();
  client.send(GET);
  await upstream.connection();
  const drain = plane.drain(DEADLINE_MS);
  const read = client.message();
  client.socket.resume();
  assert.equal((await read).body.length, size);
  client.end();
  await drain;
});

test("an idle connection whose client is still reading the last response closes after that", async () => {
  // More than the sockets of both sides hold.
  const size = 24_000_000;
  const directResponse = { status: 200, body: "x".repeat(size) };
  await using plane = await TestPlane.start([
    { target: { type: "invalid", reference: "" }, policies: { directResponse } },
  ]);
  const client = await RawPeer.connect(plane.port);
  client.socket.pause();
  client.send(GET);
  await plane.logged('"http.status":200');
  const idle = await RawPeer.connect(plane.port);
  const drain = plane.drain(DEADLINE_MS);
  // The client begins to read only when the drain has come to the idle connections.
  await idle.closed();
  idle.end();
  client.socket.resume();
  assert.equal((await client.message()).body.length, size);
  assert.equal(await client.closed(), "end");
  client.end();
  await drain;
});

test("a drain ends idle connections last: requests that arrive before are served", async (t: TestContext) => {
  await using upstream = await RawUpstream.answering(() => reply("answer"));
  await using plane = await TestPlane.start(upstream.port);
  const clients = [await RawPeer.connect(plane.port), await RawPeer.connect(plane.port)] as const;
  for (const client of clients) {
    client.send(GET);
    assert.deepEqual(valuesOf(await client.message(), "connection"), []);
  }
  const [late, last] = clients;
  // The test controls how long the drain waits.
  const realDelay = delay;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  syncBuiltinESMExports();
  try {
    for (const step of DRAIN_STEPS.slice(0, -1)) {
      let done = false;
      const taken = plane.plane.drain(step, DEADLINE_MS).then(() => {
        done = true;
      });
      while (!done) {
        t.mock.timers.tick(10);
        await turn();
      }
      await taken;
    }
    await assert.rejects(RawPeer.connect(plane.port));
    const finished = plane.plane.drain("finish", DEADLINE_MS);
    t.mock.timers.tick(299);
    for (let i = 0; i < 10; i++) await turn();
    late.send(GET);
    const answer = await late.message();
    assert.deepEqual([answer.body, valuesOf(answer, "connection")], ["answer", ["close"]]);
    late.end();
    // In the timers phase of the event loop: this request is in the system's buffer, still unread.
    await realDelay(0);
    last.send(GET);
    t.mock.timers.tick(1);
    assert.equal((await last.message()).body, "answer");
    last.end();
    await finished;
  } finally {
    t.mock.timers.reset();
    syncBuiltinESMExports();
  }
});
