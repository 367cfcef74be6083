import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf, creatorOf, RecordedTrace } from "../testing/context.ts";
import { delay } from "./index.ts";

const create = creatorOf(delay);

test("waits as long as the duration or the expression says", async () => {
  for (const duration of ["20ms", "20", 'duration("0.02s")', 'request.path == "/shop/cart" ? 20 : 0']) {
    const start = performance.now();
    const outcome = create({ duration }).onRequest?.(contextOf());
    assert.ok(outcome instanceof Promise, duration);
    await outcome;
    assert.ok(performance.now() - start >= 19, duration);
  }
});

test("nothing waits when there is no delay or the expression fails", () => {
  const failed = "the duration cannot be computed, so there is no delay";
  for (const [duration, reason] of [
    ["0", "the duration is 0 or less"],
    ["0s", "the duration is 0 or less"],
    ["-5", "the duration is 0 or less"],
    ["request.headers.none", failed],
    ["request.method", failed],
  ] as const) {
    const trace = new RecordedTrace();
    assert.equal(create({ duration }).onRequest?.(contextOf({}, { trace })), undefined);
    assert.deepEqual(trace.events, [{ kind: "delay", reason }]);
  }
});

test("an invalid expression is rejected at load", () => {
  assert.throws(() => create({ duration: "nope" }), /unknown variable nope/);
});
