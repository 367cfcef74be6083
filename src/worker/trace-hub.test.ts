import assert from "node:assert/strict";
import { test } from "node:test";
import { CelError } from "../cel/index.ts";
import type { TraceEvent } from "../trace/events.ts";
import { MAX_WATCHERS, TraceGate } from "../trace/gate.ts";
import type { PostedEvent } from "../trace/tracer.ts";
import { TraceHub, type TraceReader } from "./trace-hub.ts";

const OPTIONS = { reveal: false, maxBodyBytes: 100, filter: { functions: "" } };

/** Accepts events while it has room. */
class Reader implements TraceReader {
  onDrain: (() => void) | undefined;
  readonly events: string[] = [];
  room = Number.POSITIVE_INFINITY;
  ended = false;

  event(json: string): boolean {
    if (this.room <= 0) return false;
    this.room--;
    const { message } = JSON.parse(json) as TraceEvent;
    this.events.push(message.type === "dropped" ? `dropped ${message.count}` : message.type);
    return true;
  }

  end(): void {
    this.ended = true;
  }

  drain(room: number): void {
    this.room = room;
    this.onDrain?.();
  }
}

/** A hub whose workers are this test. */
function setUp() {
  const gate = new TraceGate();
  const sent: string[] = [];
  const hub = new TraceHub(gate, {
    watch: async (id, slot, filter) => void sent.push(`watch ${id} ${slot} ${filter.expression ?? ""}`.trim()),
    follow: async (id, slot) => void sent.push(`follow ${id} ${slot}`),
    unwatch: (id) => void sent.push(`unwatch ${id}`),
  });
  let at = 0;
  const event = (type: string): PostedEvent => {
    const end = at++;
    return { json: JSON.stringify({ eventStart: null, eventEnd: end, severity: "info", message: { type } }), end };
  };
  return { gate, hub, sent, event };
}

test("a watch reaches all workers before it is armed, and is removed when its trace ends", async () => {
  const { gate, hub, sent, event } = setUp();
  const reader = new Reader();
  const opening = hub.open({ ...OPTIONS, filter: { expression: "true", functions: "" } }, reader);
  assert.equal(gate.armed, false);
  await opening;
  assert.equal(gate.claim(0), true);
  hub.deliver(1, event("requestStarted"));
  hub.deliver(1, event("requestFinished"));
  hub.deliver(1, undefined);
  assert.deepEqual(reader.events, ["requestStarted", "requestFinished"]);
  assert.equal(reader.ended, true);
  assert.deepEqual(sent, ["watch 1 0 true", "unwatch 1"]);
  assert.equal(hub.size, 0);
});

test("a closed session frees its slot, even before a request; late events are ignored", async () => {
  const { gate, hub, sent, event } = setUp();
  const reader = new Reader();
  const handle = await hub.open(OPTIONS, reader);
  handle.close();
  handle.close();
  assert.equal(gate.armed, false);
  hub.deliver(1, event("requestStarted"));
  assert.deepEqual(reader.events, []);
  await hub.open(OPTIONS, new Reader());
  assert.deepEqual(sent, ["watch 1 0", "unwatch 1", "watch 2 0"]);
});

test("events that a slow reader misses are counted in a dropped event at their place", async () => {
  const { hub, event } = setUp();
  const reader = new Reader();
  await hub.open(OPTIONS, reader);
  reader.room = 1;
  for (const type of ["requestStarted", "a", "b"]) hub.deliver(1, event(type));
  reader.room = Number.POSITIVE_INFINITY;
  hub.deliver(1, event("c"));
  hub.deliver(1, undefined);
  assert.deepEqual(reader.events, ["requestStarted", "dropped 2", "c"]);
  assert.equal(reader.ended, true);
});

test("a trace that ends while its reader is behind ends after the dropped event", async () => {
  const { gate, hub, event } = setUp();
  const reader = new Reader();
  await hub.open(OPTIONS, reader);
  gate.claim(0);
  reader.room = 1;
  for (const type of ["requestStarted", "a", "requestFinished"]) hub.deliver(1, event(type));
  hub.deliver(1, undefined);
  assert.equal(reader.ended, false);
  assert.equal(hub.size, 0, "its slot is free");
  reader.drain(1);
  assert.deepEqual(reader.events, ["requestStarted", "dropped 2"]);
  assert.equal(reader.ended, true);
});

test("with room for the dropped event alone, the next loss is counted from zero", async () => {
  const { hub, event } = setUp();
  const reader = new Reader();
  await hub.open(OPTIONS, reader);
  reader.room = 0;
  hub.deliver(1, event("a"));
  reader.room = 1;
  hub.deliver(1, event("b"));
  reader.drain(5);
  hub.deliver(1, event("c"));
  assert.deepEqual(reader.events, ["dropped 1", "dropped 1", "c"]);
});

test("the trace of a worker that died ends with the reason", async () => {
  const { hub, event } = setUp();
  const reader = new Reader();
  await hub.open(OPTIONS, reader);
  hub.deliver(1, event("requestStarted"));
  hub.abandon([1, 99], "it died");
  assert.deepEqual(reader.events, ["requestStarted", "requestFinished"]);
  assert.equal(reader.ended, true);
});

test("an invalid expression and one session too many are rejected and free their slots", async () => {
  const { gate, hub } = setUp();
  await assert.rejects(
    hub.open({ ...OPTIONS, filter: { expression: "request.path ==", functions: "" } }, new Reader()),
    CelError,
  );
  const handles = [];
  for (let i = 0; i < MAX_WATCHERS; i++) handles.push(await hub.open(OPTIONS, new Reader()));
  await assert.rejects(hub.open(OPTIONS, new Reader()), /32 traces are open already/);
  handles[5]?.close();
  await hub.open(OPTIONS, new Reader());
  assert.equal(hub.size, MAX_WATCHERS);
  assert.equal(gate.claim(5), true, "it has the free slot");
});

const FOLLOW = { count: 2, forMs: 60_000, options: { reveal: false, maxBodyBytes: 0 }, filter: { functions: "" } };

/** Reads as a follower does. */
class FollowReader extends Reader {
  override event(json: string): boolean {
    if (this.room <= 0) return false;
    this.room--;
    const { request, message } = JSON.parse(json) as { request: number | null; message: Record<string, unknown> };
    const { type, ...fields } = message;
    this.events.push(`${request ?? "-"} ${type}${request === null ? ` ${JSON.stringify(fields)}` : ""}`);
    return true;
  }
}

test("a follower that leaves frees its slot", async () => {
  const { gate, hub, sent } = setUp();
  const handle = await hub.follow(FOLLOW, new FollowReader());
  assert.equal(gate.armed, true);
  handle.close();
  handle.close();
  assert.equal(gate.armed, false);
  assert.deepEqual(sent, ["follow 1 0", "unwatch 1"]);
});

test("after the last request that is wanted, no worker begins another, and those in progress go on", async () => {
  const { gate, hub, event, sent } = setUp();
  const reader = new FollowReader();
  await hub.follow(FOLLOW, reader);
  hub.deliverFollowed(1, 0, [{ request: 1, events: [event("a")], ended: false }]);
  assert.equal(gate.waits(0), true);
  hub.deliverFollowed(1, 1, [{ request: 1, events: [event("a"), event("b")], ended: true }]);
  assert.equal(gate.waits(0), false);
  hub.deliverFollowed(1, 1, [{ request: 2, events: [event("too many")], ended: true }]);
  assert.equal(reader.ended, false);
  hub.deliverFollowed(1, 0, [{ request: 1, events: [event("b")], ended: true }]);
  const end = '- followEnded {"reason":"count","requests":2,"unfinished":0}';
  assert.deepEqual(reader.events, ["1 a", "2 a", "2 b", "1 b", end]);
  assert.equal(reader.ended, true);
  assert.deepEqual(sent, ["follow 1 0", "unwatch 1"]);
});

test("the death of a worker ends its requests, and is said", async () => {
  for (const where of [undefined, "response.code == 500"]) {
    const { hub, event } = setUp();
    const reader = new FollowReader();
    await hub.follow({ ...FOLLOW, filter: { functions: "", where } }, reader);
    for (const worker of [0, 1]) hub.deliverFollowed(1, worker, [{ request: 1, events: [event("a")], ended: false }]);
    hub.workerDied(0);
    // Its replacement counts from 1 again.
    hub.deliverFollowed(1, 1, [{ request: 1, events: [event("b")], ended: true }]);
    const said = `- workerDied {"worker":"worker-0","unfinished":1,"held":${where !== undefined}}`;
    const end = '- followEnded {"reason":"count","requests":2,"unfinished":0}';
    assert.deepEqual(reader.events, ["1 a", "2 a", "1 requestFinished", said, "2 b", end]);
  }
});

test("what a slow follower misses is counted, and the end waits for it", async () => {
  const { hub, event } = setUp();
  const reader = new FollowReader();
  await hub.follow(FOLLOW, reader);
  reader.room = 1;
  hub.deliverFollowed(1, 0, [{ request: 1, events: [event("a"), event("b")], ended: true }]);
  hub.deliverFollowed(1, 0, [{ request: 2, events: [event("a"), event("b")], ended: true }]);
  assert.equal(reader.ended, false);
  reader.drain(1);
  assert.deepEqual(reader.events, ["1 a", '- dropped {"count":3,"requests":2}']);
  reader.drain(1);
  assert.match(reader.events.at(-1) ?? "", /^- followEnded /);
  assert.equal(reader.ended, true);
});
