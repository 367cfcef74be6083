import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { LogOutput } from "../../base/log.ts";
import { parseLogFilter } from "../../base/log-filter.ts";
import { frugal } from "../../net/frugality.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { MemoryPressure } from "./memory-pressure.ts";
import { Overload, type OverloadLimits, SAMPLE_MS } from "./overload.ts";

/** A thread whose clock, heap and random numbers the test sets, and an overload that watches it. */
class TestThread {
  time = 0;
  /** Bytes, of a heap of 100: live ones and garbage. */
  live = 10;
  garbage = 0;
  external = 0;
  collections = 0;
  draw = 0;
  readonly pressure = new MemoryPressure(2);
  readonly metrics = new Metrics();
  readonly lines: Record<string, unknown>[] = [];
  readonly overload: Overload;

  constructor(limits: Partial<OverloadLimits> = {}) {
    const output = new LogOutput(parseLogFilter("info"), "json", (line) => this.lines.push(JSON.parse(line)));
    this.overload = new Overload(
      { maxLag: 1000, heapShare: 0.8, ...limits },
      this.pressure,
      1,
      this.metrics,
      output.logger("proxy"),
      {
        now: () => this.time,
        heap: () => ({ used: this.live + this.garbage, limit: 100, external: this.external }),
        collect: () => {
          this.collections++;
          this.garbage = 0;
          this.time += 10;
        },
        random: () => this.draw,
      },
    );
  }

  /** A sample that is `lag` milliseconds late. */
  sample(lag = 0): void {
    this.time += SAMPLE_MS + lag;
    this.overload.sample();
  }

  get admits(): boolean {
    try {
      this.overload.admitRequest();
      return true;
    } catch (error) {
      assert.ok(error instanceof GatewayError && error.code === "TG_OVERLOADED");
      assert.deepEqual(error.headers, ["retry-after", "2"]);
      return false;
    }
  }

  get messages(): unknown[] {
    return this.lines.map(({ level, message, reason }) => (level === "info" ? `${message}: ${reason}` : message));
  }
}

test("one late sample changes nothing; consecutive late ones turn more and more requests away, punctual ones fewer", () => {
  const thread = new TestThread();
  thread.sample(5000);
  assert.ok(thread.admits);
  thread.sample(1000);
  // A fifth of the requests.
  thread.draw = 0.19;
  assert.ok(!thread.admits);
  thread.draw = 0.21;
  assert.ok(thread.admits);
  assert.ok(thread.overload.admitConnection());
  for (let i = 0; i < 6; i++) thread.sample(2000);
  thread.draw = 0.999;
  assert.ok(!thread.admits);
  // Between half of the limit and the limit it stays as it is.
  thread.sample(900);
  assert.ok(!thread.admits);
  for (let i = 0; i < 19; i++) thread.sample(499);
  thread.draw = 0.04;
  assert.ok(!thread.admits);
  thread.sample(0);
  thread.draw = 0;
  assert.ok(thread.admits);
  assert.deepEqual(thread.messages, [
    "overloaded: the event loop is late, new work is turned away",
    "no longer overloaded: lag",
  ]);
});

test("a full heap turns everything away until it has fallen well below the limit", () => {
  const thread = new TestThread();
  thread.live = 79;
  thread.sample();
  assert.ok(thread.admits && thread.overload.admitConnection());
  thread.live = 80;
  thread.sample();
  assert.ok(!thread.admits && !thread.overload.admitConnection());
  thread.live = 73;
  thread.sample();
  assert.ok(!thread.admits);
  thread.live = 71;
  thread.sample();
  assert.ok(thread.admits && thread.overload.admitConnection());
  assert.deepEqual(thread.messages, [
    "overloaded: the heap of the worker is almost full, new work is turned away",
    "no longer overloaded: heap",
  ]);
});

test("garbage does not count, neither before overload begins nor while it lasts", () => {
  const thread = new TestThread();
  thread.garbage = 75;
  thread.sample();
  assert.ok(thread.admits);
  assert.equal(thread.collections, 1);
  thread.live = 90;
  thread.sample();
  assert.ok(!thread.admits);
  // Work has ended and left garbage; nothing is allocated that would make V8 collect it.
  thread.live = 10;
  thread.garbage = 80;
  thread.sample();
  assert.ok(thread.admits);
});

test("collections take a small part of the time: until the next one, a heap that fills again counts as full", () => {
  const thread = new TestThread();
  thread.garbage = 75;
  thread.sample();
  assert.equal(thread.collections, 1);
  assert.ok(thread.admits);
  // A collection of 10 ms allows the next one after 100 ms.
  thread.time += 90;
  thread.garbage = 75;
  thread.overload.sample();
  assert.equal(thread.collections, 1);
  assert.ok(!thread.admits);
  thread.time += 10;
  thread.overload.sample();
  assert.equal(thread.collections, 2);
  assert.ok(thread.admits);
});

test("the heap is measured between samples too, when many requests come", () => {
  const thread = new TestThread();
  thread.live = 90;
  let admitted = 0;
  while (thread.admits) admitted++;
  assert.equal(admitted, 63);
  const filling = new TestThread();
  filling.live = 60;
  filling.sample();
  filling.live = 90;
  admitted = 0;
  while (filling.admits) admitted++;
  assert.equal(admitted, 7);
});

test("while the process is short of memory, everything is turned away", () => {
  const thread = new TestThread({ heapShare: 0, maxLag: 0 });
  thread.external = 500;
  thread.pressure.askToCollect();
  thread.sample();
  assert.equal(thread.collections, 1);
  assert.equal(thread.pressure.held, 510);
  thread.pressure.active = true;
  thread.sample(60_000);
  assert.ok(!thread.admits && !thread.overload.admitConnection());
  assert.equal(thread.collections, 1);
  thread.pressure.active = false;
  thread.sample();
  assert.ok(thread.admits && thread.overload.admitConnection());
});

test("while heap or memory is short, or nearly so, reads are small and little is kept", () => {
  const thread = new TestThread();
  thread.sample();
  assert.equal(frugal, false);
  thread.pressure.near = true;
  thread.sample();
  assert.equal(frugal, true);
  thread.pressure.near = false;
  thread.live = 90;
  thread.sample();
  assert.equal(frugal, true);
  thread.live = 10;
  thread.sample();
  assert.equal(frugal, false);
});

test("limits of 0 switch the protection off", () => {
  const thread = new TestThread({ heapShare: 0, maxLag: 0 });
  thread.live = 100;
  for (let i = 0; i < 5; i++) thread.sample(60_000);
  assert.ok(thread.admits && thread.overload.admitConnection());
  assert.deepEqual(thread.lines, []);
});

test("metrics count what is turned away, and show the state", () => {
  const thread = new TestThread();
  thread.live = 90;
  thread.sample(300);
  for (let i = 0; i < 3; i++) assert.ok(!thread.admits);
  thread.overload.admitConnection();
  const {
    overload_rejected_total: rejected,
    overloaded_workers: states,
    event_loop_lag_seconds: lag,
  } = thread.metrics.snapshot();
  const of = (samples: typeof rejected, ...labels: string[]): unknown =>
    samples?.find((each) => each.labels.join() === labels.join())?.value;
  assert.equal(of(rejected, "request", "heap"), 3);
  assert.equal(of(rejected, "connection", "heap"), 1);
  assert.equal(of(states, "heap"), 1);
  assert.equal(of(states, "lag"), 0);
  assert.equal(of(lag, "worker-1"), 0.3);
});
