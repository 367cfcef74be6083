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
