import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Rollouts } from "./rollouts.ts";

/** Longer than a rollout holds others up. */
const LONG_MS = 130_000;

function start(t: TestContext, limit = 1) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const begun: string[] = [];
  const rollouts = new Rollouts(limit, (gateway) => begun.push(gateway));
  t.after(() => rollouts.close());
  return { rollouts, begun, pass: (ms: number) => t.mock.timers.tick(ms) };
}

test("a rollout that does not end holds others up for a while only", (t) => {
  const { rollouts, begun, pass } = start(t);
  assert.deepEqual(
    ["a", "b", "c"].map((gateway) => rollouts.admit(gateway)),
    [true, false, false],
  );
  pass(LONG_MS / 2);
  assert.deepEqual(begun, []);
  pass(LONG_MS / 2);
  assert.deepEqual(begun, ["b"]);
  assert.deepEqual([rollouts.admit("b"), rollouts.admit("c")], [true, false]);
});

test("each turn has the whole time", (t) => {
  const { rollouts, begun, pass } = start(t);
  rollouts.admit("a");
  pass(LONG_MS / 2);
  rollouts.end("a");
  rollouts.admit("a");
  rollouts.admit("b");
  pass(LONG_MS / 2);
  assert.deepEqual(begun, []);
  pass(LONG_MS / 2);
  assert.deepEqual(begun, ["b"]);
});

test("a turn that a Gateway no longer needs goes to the next one", (t) => {
  const { rollouts, begun, pass } = start(t);
  for (const gateway of ["a", "b", "c", "d"]) rollouts.admit(gateway);
  rollouts.end("a");
  // It is deleted before it begins.
  rollouts.end("b");
  assert.deepEqual(begun, ["b", "c"]);
  // Its change has been taken back.
  pass(LONG_MS);
  assert.deepEqual(begun, ["b", "c", "d"]);
});
