import assert from "node:assert/strict";
import { test } from "node:test";
import { CelError } from "../cel/index.ts";
import type { TraceEvent } from "../trace/events.ts";
import { FollowCounters } from "../trace/follow-counters.ts";
import type { FollowedBatch } from "../trace/follower.ts";
import { MAX_WATCHERS, TraceGate } from "../trace/gate.ts";
import type { PostedEvent } from "../trace/tracer.ts";
import { StreamGone, TooManyTraces, TraceHub, type TraceReader } from "./trace-hub.ts";

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
  const event = (type: string, padding?: string): PostedEvent => {
    const end = at++;
    const message = { type, padding };
    return { json: JSON.stringify({ eventStart: null, eventEnd: end, severity: "info", message }), end };
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

/** A message with events of one request. */
const batchOf = (request: number, events: readonly PostedEvent[], ended: boolean): FollowedBatch => ({
  text: events.map(({ json }) => json).join(""),
  requests: [{ request, lengths: events.map(({ json }) => json.length), ended }],
});

/** Reads as a follower does: each call takes room. */
class FollowReader {
  onDrain: (() => void) | undefined;
  readonly seen: string[] = [];
  /** Of the last event. */
  id = "";
  room = Number.POSITIVE_INFINITY;
  ended = false;

  events(events: readonly { readonly json?: string; readonly id: string }[]): boolean {
    if (this.room <= 0) return false;
    this.room--;
    for (const { json, id } of events) {
      this.id = id;
      if (json === undefined) continue;
      const { request, message } = JSON.parse(json) as { request: number | null; message: Record<string, unknown> };
      const { type, padding: _, ...fields } = message;
      this.seen.push(`${request ?? "-"} ${type}${request === null ? ` ${JSON.stringify(fields)}` : ""}`);
    }
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

const END = '- followEnded {"reason":"count","requests":2,"unfinished":0}';

test("a follower that leaves and does not come back within 10 s frees its slot", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { gate, hub, sent } = setUp();
  const reader = new FollowReader();
  const opening = hub.follow(FOLLOW, reader);
  assert.equal(reader.id, "", "the reader is not told to begin before the workers know");
  const handle = await opening;
  assert.equal(gate.armed, true);
  handle.close();
  handle.close();
  t.mock.timers.tick(9_999);
  assert.equal(gate.armed, true);
  t.mock.timers.tick(1);
  assert.equal(gate.armed, false);
  assert.deepEqual(sent, ["follow 1 0", "unwatch 1"]);
  assert.throws(() => hub.resume(reader.id, new FollowReader()), StreamGone);
});

test("a follower that comes back goes on after the event that it names, and stays as long as it likes", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { hub, event } = setUp();
  const reader = new FollowReader();
  const handle = await hub.follow(FOLLOW, reader);
  hub.deliverFollowed(1, 0, batchOf(1, [event("a"), event("b")], true));
  const { id } = reader;
  hub.deliverFollowed(1, 0, batchOf(2, [event("a")], false));
  handle.close();
  hub.deliverFollowed(1, 0, batchOf(2, [event("b")], false));
  // Once more before anything has arrived.
  const empty = new FollowReader();
  empty.room = 1;
  hub.resume(id, empty).close();
  const again = new FollowReader();
  hub.resume(empty.id, again);
  t.mock.timers.tick(20_000);
  hub.deliverFollowed(1, 0, batchOf(2, [event("c")], true));
  assert.deepEqual(again.seen, ["2 a", "2 b", "2 c", END]);
  assert.equal(again.ended, true);
});

test("an end that did not arrive can be read again; after it there is nothing", async () => {
  const { hub, event } = setUp();
  const reader = new FollowReader();
  const handle = await hub.follow({ ...FOLLOW, count: 1 }, reader);
  hub.deliverFollowed(1, 0, batchOf(1, [event("a")], false));
  const { id } = reader;
  hub.deliverFollowed(1, 0, batchOf(1, [event("b")], true));
  handle.close();
  const again = new FollowReader();
  hub.resume(id, again);
  assert.deepEqual(again.seen, ["1 b", END.replace("2", "1")]);
  assert.throws(() => hub.resume(again.id, new FollowReader()), StreamGone);
});

test("who comes back takes over from a connection that has not ended yet", async () => {
  const { hub, event } = setUp();
  const first = new FollowReader();
  const handle = await hub.follow(FOLLOW, first);
  hub.deliverFollowed(1, 0, batchOf(1, [event("a")], false));
  const second = new FollowReader();
  hub.resume(first.id, second);
  assert.equal(first.ended, true);
  handle.close();
  first.drain(1);
  hub.deliverFollowed(1, 0, batchOf(1, [event("b")], false));
  assert.deepEqual(first.seen, ["1 a"]);
  assert.deepEqual(second.seen, ["1 b"]);
});

test("an id of another stream, or that this one has never given, is not resumed", async () => {
  const { hub } = setUp();
  const reader = new FollowReader();
  await hub.follow(FOLLOW, reader);
  hub.workerDied(0, new FollowCounters());
  const [name] = reader.id.split("-");
  for (const id of ["", "x", "0-1-0-0", `${name}-99-0-0`, `${name}-1-1-0`, `${name}-1-0-1`, `${name}--1-0-0`])
    assert.throws(() => hub.resume(id, new FollowReader()), StreamGone, id);
});

test("streams without a reader make way for others", async () => {
  const { gate, hub } = setUp();
  const handles = [];
  for (let i = 0; i < MAX_WATCHERS; i++) handles.push(await hub.follow(FOLLOW, new FollowReader()));
  await assert.rejects(hub.follow(FOLLOW, new FollowReader()), TooManyTraces);
  handles[7]?.close();
  await hub.follow(FOLLOW, new FollowReader());
  assert.equal(gate.waits(7), true);
  await assert.rejects(hub.follow(FOLLOW, new FollowReader()), TooManyTraces);
});

test("after the last request that is wanted, no worker begins another, and those in progress go on", async () => {
  const { gate, hub, event, sent } = setUp();
  const reader = new FollowReader();
  await hub.follow(FOLLOW, reader);
  hub.deliverFollowed(1, 0, batchOf(1, [event("a")], false));
  assert.equal(gate.waits(0), true);
  hub.deliverFollowed(1, 1, batchOf(1, [event("a"), event("b")], true));
  assert.equal(gate.waits(0), false);
  hub.deliverFollowed(1, 1, batchOf(2, [event("too many")], true));
  assert.equal(reader.ended, false);
  hub.deliverFollowed(1, 0, batchOf(1, [event("b")], true));
  assert.deepEqual(reader.seen, ["1 a", "2 a", "2 b", "1 b", END]);
  assert.equal(reader.ended, true);
  assert.deepEqual(sent, ["follow 1 0", "unwatch 1"]);
});

test("the death of a worker ends its requests, and is said", async () => {
  for (const where of [undefined, "response.code == 500"]) {
    const { hub, event } = setUp();
    const reader = new FollowReader();
    await hub.follow({ ...FOLLOW, filter: { functions: "", where } }, reader);
    for (const worker of [0, 1]) hub.deliverFollowed(1, worker, batchOf(1, [event("a")], false));
    hub.workerDied(0, new FollowCounters());
    // Its replacement counts from 1 again.
    hub.deliverFollowed(1, 1, batchOf(1, [event("b")], true));
    const said = `- workerDied {"worker":"worker-0","unfinished":1,"held":${where !== undefined}}`;
    assert.deepEqual(reader.seen, ["1 a", "2 a", "1 requestFinished", said, "2 b", END]);
  }
});

test("what a slow follower misses is counted, and the end waits for it", async () => {
  const { hub, event } = setUp();
  const reader = new FollowReader();
  await hub.follow(FOLLOW, reader);
  reader.room = 1;
  const events = [event("a"), event("b", "x".repeat(3 * 1024 * 1024))];
  hub.deliverFollowed(1, 0, batchOf(1, [event("a")], false));
  hub.deliverFollowed(1, 0, batchOf(1, events, true));
  hub.deliverFollowed(1, 0, batchOf(2, events, true));
  assert.equal(reader.ended, false);
  assert.deepEqual(reader.seen, ["1 a"]);
  reader.drain(2);
  assert.deepEqual(reader.seen.slice(1), ['- dropped {"count":2,"requests":1,"ended":[1]}', "2 a", "2 b", END]);
  assert.equal(reader.ended, true);
});

test("what a worker had no room for is said in front of what follows, and its requests end", async () => {
  const { hub, event } = setUp();
  const reader = new FollowReader();
  await hub.follow({ ...FOLLOW, count: 6 }, reader);
  for (const request of [1, 2]) hub.deliverFollowed(1, 0, batchOf(request, [event("a")], false));
  // The second has ended, and three have begun, of which one goes on.
  const lost = { events: 20, begun: 3, inProgress: [1, 4] };
  hub.deliverFollowed(1, 0, { ...batchOf(1, [event("z")], true), lost });
  hub.deliverFollowed(1, 0, batchOf(4, [event("z")], true));
  hub.deliverFollowed(1, 0, batchOf(6, [event("a")], true));
  const dropped = '- dropped {"count":20,"requests":3,"ended":[2]}';
  const end = END.replace("2", "6");
  assert.deepEqual(reader.seen, ["1 a", "2 a", dropped, "1 z", "3 z", "6 a", end]);
});

test("what a dead worker had produced and not sent is counted, with requests of which nothing has arrived", async () => {
  const { hub, event } = setUp();
  const reader = new FollowReader();
  await hub.follow({ ...FOLLOW, count: 4 }, reader);
  const counters = new FollowCounters();
  const worker = counters.begin(0, 1);
  for (let request = 1; request <= 3; request++) worker.begun();
  worker.produced(10);
  hub.deliverFollowed(1, 0, batchOf(1, [event("a"), event("b")], false));
  hub.workerDied(0, counters);
  hub.deliverFollowed(1, 1, batchOf(1, [event("a")], true));
  const said = [
    '- dropped {"count":8,"requests":2,"ended":[]}',
    "1 requestFinished",
    '- workerDied {"worker":"worker-0","unfinished":1,"held":false}',
  ];
  assert.deepEqual(reader.seen, ["1 a", "1 b", ...said, "4 a", END.replace("2", "4")]);
});

test("counters that an earlier follower has left in its slot are not those of this one", async () => {
  const { hub } = setUp();
  const reader = new FollowReader();
  const counters = new FollowCounters();
  counters.begin(0, 99).produced(7);
  await hub.follow(FOLLOW, reader);
  hub.workerDied(0, counters);
  assert.deepEqual(reader.seen, ['- workerDied {"worker":"worker-0","unfinished":0,"held":false}']);
});
