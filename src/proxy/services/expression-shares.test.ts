import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { ExpressionShares } from "./expression-shares.ts";

/** Steps of a millisecond. */
const MS = 1_000_000;

/** A worker of which time and load are given. */
class TestWorker {
  time = 0;
  active = 0;
  idle = 0;
  readonly metrics = new Metrics();
  readonly shares: ExpressionShares;

  constructor(routeShare = 0.1) {
    const clock = { now: () => this.time, loopTime: () => ({ active: this.active, idle: this.idle }) };
    this.shares = new ExpressionShares({ perRequest: 1000, routeShare }, this.metrics, clock);
  }

  /** Lets time pass, of which the event loop is busy for a part. */
  pass(ms: number, busy: number): void {
    this.time += ms;
    this.active += ms * busy;
    this.idle += ms * (1 - busy);
  }

  use(label: string | undefined, ms: number): void {
    this.shares.of(label).add(ms * MS);
  }

  admits(label: string): boolean {
    try {
      this.shares.admit(label);
      return true;
    } catch (error) {
      assert.ok(error instanceof GatewayError && error.code === "TG_EXPRESSIONS_EXCEEDED");
      assert.deepEqual(error.headers, ["retry-after", "1"]);
      return false;
    }
  }

  /** Second by second: `ms` of expressions for each request to `a`, and requests to `b`. Returns how many of `a` were rejected. */
  run(
    seconds: number,
    load: { readonly a: number; readonly ms: number; readonly b: number; readonly busy: number },
  ): number {
    let rejected = 0;
    const turns = 100;
    for (let turn = 0; turn < seconds * turns; turn++) {
      for (let i = 0; i < load.a / turns; i++) {
        if (this.admits("a")) this.use("a", load.ms);
        else rejected++;
      }
      if (turn % (turns / load.b) === 0) assert.ok(this.admits("b"));
      this.pass(1000 / turns, load.busy);
    }
    return rejected;
  }

  metric(name: "expression_seconds_total" | "expression_rejected_total", route: string): number | undefined {
    const value = this.metrics.snapshot()[name]?.find(({ labels }) => labels[0] === route)?.value;
    return typeof value === "number" ? value : undefined;
  }
}

test("a route beyond its share is turned away while others need the worker, and keeps its share", () => {
  const worker = new TestWorker();
  // 600 ms of expressions in each second, of which it may have 100.
  const rejected = worker.run(20, { a: 600, ms: 1, b: 50, busy: 0.95 });
  assert.ok(rejected > 9000, `${rejected} of 12000`);
  assert.ok(rejected < 10_500, `${rejected} of 12000`);
  assert.equal(worker.metric("expression_rejected_total", "a"), rejected);
  assert.ok(Math.abs((worker.metric("expression_seconds_total", "a") ?? 0) - (12_000 - rejected) / 1000) < 0.001);
  // Afterwards it is admitted again.
  worker.pass(10_000, 0);
  assert.equal(worker.run(5, { a: 100, ms: 0.5, b: 50, busy: 0.95 }), 0);
});

test("a route may use more while the worker is idle enough, or has no other traffic", () => {
  assert.equal(new TestWorker().run(10, { a: 600, ms: 1, b: 50, busy: 0.6 }), 0);
  assert.equal(new TestWorker().run(10, { a: 600, ms: 1, b: 1, busy: 1 }), 0);
  assert.equal(new TestWorker(0).run(10, { a: 600, ms: 1, b: 50, busy: 1 }), 0);
});

test("the routes of a namespace have a common share, and routes without expressions are never turned away", () => {
  const worker = new TestWorker();
  let [rejected, admitted] = [0, 0];
  // 30 routes with 30 ms of expressions in each second: 900 ms, of which the namespace may have 300.
  for (let turn = 0; turn < 20 * 30; turn++) {
    const label = `tenant/${turn % 30}`;
    if (worker.admits(label)) {
      worker.use(label, 30);
      admitted++;
    } else rejected++;
    for (const other of ["tenant/plain", "other/route"]) assert.ok(worker.admits(other));
    worker.pass(1000 / 30, 0.95);
  }
  assert.ok(rejected > admitted, `${rejected} rejected, ${admitted} admitted`);
  assert.ok(admitted > 20 * 9, `${admitted} admitted`);
  // Alone, it may use all of the worker.
  const alone = new TestWorker();
  for (let turn = 0; turn < 20 * 30; turn++) {
    assert.ok(alone.admits(`tenant/${turn % 30}`));
    alone.use(`tenant/${turn % 30}`, 30);
    assert.ok(alone.admits("tenant/plain"));
    alone.pass(1000 / 30, 0.95);
  }
});

test("small expressions never exceed the share", () => {
  assert.equal(new TestWorker().run(10, { a: 10_000, ms: 0.005, b: 50, busy: 1 }), 0);
});

test("steps that policies of the gateway use without a route are counted, and no request is turned away for them", () => {
  const worker = new TestWorker();
  worker.use(undefined, 5000);
  assert.equal(worker.metric("expression_seconds_total", "unknown"), 5);
  assert.ok(worker.admits("a"));
});

test("routes that are no longer used are forgotten", () => {
  const worker = new TestWorker();
  for (let i = 0; i < 1024; i++) worker.use(`old/${i}`, 1);
  worker.pass(20_000, 0);
  const before = worker.shares.of("old/0");
  worker.use("new/0", 1);
  assert.notEqual(worker.shares.of("old/0"), before);
});
