import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkQueue } from "./work-queue.ts";

const FAILURE = { first: 5, longest: 20 };

/** Resolves when the condition holds, which every run of the queue checks. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

test("additions while a key waits or runs become one run each", async () => {
  const runs: string[] = [];
  const [started, finish, second] = [gate(), gate(), gate()];
  const queue = new WorkQueue(
    1,
    { failure: FAILURE },
    async (key) => {
      runs.push(key);
      if (runs.length === 1) {
        started.open();
        await finish.opened;
      } else second.open();
      return false;
    },
    () => assert.fail("nothing fails"),
  );
  queue.add("a");
  await started.opened;
  for (let i = 0; i < 5; i++) queue.add("a");
  finish.open();
  await second.opened;
  await queue.close();
  assert.deepEqual(runs, ["a", "a"]);
});

test("a failed key is retried until it succeeds, others are not delayed", async () => {
  const runs: string[] = [];
  const failures: number[] = [];
  const done = gate();
  const queue = new WorkQueue(
    1,
    { failure: FAILURE },
    async (key) => {
      runs.push(key);
      const times = runs.filter((each) => each === "bad").length;
      if (key === "bad" && times < 4) throw new Error("refused");
      if (key === "bad") done.open();
      return true;
    },
    (_key, _error, count) => failures.push(count),
  );
  queue.add("bad");
  queue.add("good");
  await done.opened;
  await queue.close();
  assert.deepEqual(runs.slice(0, 2), ["bad", "good"]);
  assert.deepEqual(failures, [1, 2, 3]);
});

test("a retry does not wait for the rest after a failure", async () => {
  const [failed, done] = [gate(), gate()];
  let runs = 0;
  const queue = new WorkQueue(
    1,
    { failure: { first: 3_600_000, longest: 3_600_000 } },
    async () => {
      if (++runs === 1) throw new Error("refused");
      done.open();
      return true;
    },
    () => failed.open(),
  );
  queue.add("a");
  await failed.opened;
  queue.retry("a");
  await done.opened;
  await queue.close();
  assert.equal(runs, 2);
});

test("keys that change often wait longer and longer", async (t) => {
  let now = 1_000_000;
  t.mock.method(performance, "now", () => now);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const pass = async (milliseconds: number): Promise<void> => {
    now += milliseconds;
    t.mock.timers.tick(milliseconds);
    // Until the run has ended.
    await new Promise((resolve) => setImmediate(resolve));
  };
  let runs = 0;
  const queue = new WorkQueue(
    1,
    { failure: FAILURE, change: { first: 10, longest: 40, quiet: 10_000 } },
    async () => {
      runs++;
      return true;
    },
    () => assert.fail("nothing fails"),
  );
  queue.add("a");
  await pass(0);
  for (const [index, rest] of [10, 20, 40, 40].entries()) {
    queue.add("a");
    await pass(rest - 1);
    assert.equal(runs, index + 1);
    await pass(1);
    assert.equal(runs, index + 2);
  }
  await queue.close();
});

test("at most as many keys run at once as are allowed", async () => {
  let [now, most, ran] = [0, 0, 0];
  const done = gate();
  const queue = new WorkQueue(
    3,
    { failure: FAILURE },
    async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
      if (++ran === 20) done.open();
      return false;
    },
    () => assert.fail("nothing fails"),
  );
  for (let i = 0; i < 20; i++) queue.add(`key${i}`);
  await done.opened;
  await queue.close();
  assert.equal(most, 3);
});

test("close aborts what runs and starts nothing more", async () => {
  const started = gate();
  const runs: string[] = [];
  const queue = new WorkQueue(
    1,
    { failure: FAILURE },
    async (key, signal) => {
      runs.push(key);
      started.open();
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return false;
    },
    () => assert.fail("an abort is no failure"),
  );
  queue.add("a");
  queue.add("b");
  await started.opened;
  await queue.close();
  assert.deepEqual(runs, ["a"]);
});
