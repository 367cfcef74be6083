import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { SharedLoads } from "./shared-loads.ts";

function workers(count: number, rows?: number): SharedLoads[] {
  const memory = SharedLoads.memoryFor(count, rows);
  return Array.from({ length: count }, (_, index) => new SharedLoads(memory, index));
}

function claimed(loads: SharedLoads | undefined, key: string) {
  const load = loads?.claim(key);
  assert.ok(load !== undefined, `no room for ${key}`);
  return load;
}

test("workers see each other's calls at an endpoint, and none of those at others", () => {
  const [first, second] = workers(2);
  const [a, b, other] = [claimed(first, "a"), claimed(second, "a"), claimed(second, "b")];
  a.add(1);
  b.add(2);
  assert.deepEqual([a.calls, b.calls], [3, 3]);
  a.add(-1);
  assert.deepEqual([a.calls, b.calls, other.calls], [2, 2, 0]);
});

test("a worker that releases an endpoint takes its calls with it, and one that claims it later sees those of the others", () => {
  const [first, second] = workers(2);
  const [a, b] = [claimed(first, "a"), claimed(second, "a")];
  a.add(3);
  b.add(1);
  a.release();
  assert.equal(b.calls, 1);
  assert.equal(claimed(first, "a").calls, 1);
});

test("the calls of a worker that has died vanish, its lock is free, and its rows are", () => {
  const memory = SharedLoads.memoryFor(20, 1);
  const [first, last] = [new SharedLoads(memory, 0), new SharedLoads(memory, 19)];
  const [a, b] = [claimed(first, "a"), claimed(last, "a")];
  a.add(1);
  b.add(5);
  // It held the lock.
  new Int32Array(memory)[1] = 20;
  new SharedLoads(memory).forget(19);
  assert.equal(a.calls, 1);
  assert.equal(first.claim("b"), undefined, "the others still use the row");
  a.release();
  assert.equal(claimed(first, "b").calls, 0);
  new SharedLoads(memory).forget(19);
  assert.equal(claimed(last, "b").calls, 0, "forgotten twice");
});

test("a full table has no room, until every worker has released an endpoint", () => {
  const [first, second] = workers(2, 3);
  const held = ["a", "b", "c"].map((key) => claimed(first, key));
  const shared = claimed(second, "a");
  for (const load of [...held, shared]) load.add(1);
  assert.equal(first?.claim("d"), undefined);
  held[0]?.release();
  assert.equal(first?.claim("d"), undefined);
  shared.release();
  const next = claimed(first, "d");
  next.add(1);
  assert.equal(claimed(second, "d").calls, 1);
  assert.deepEqual([held[1]?.calls, held[2]?.calls], [1, 1]);
});

test("the parts of a limit are the limit, but each worker has at least one", () => {
  const parts = (limit: number): number[] => workers(4).map((each) => each.partOf(limit));
  assert.deepEqual(
    [parts(10), parts(8), parts(2)],
    [
      [3, 3, 2, 2],
      [2, 2, 2, 2],
      [1, 1, 1, 1],
    ],
  );
});

test("many endpoints, claimed in any order, each have one row", () => {
  const [first, second] = workers(2, 256);
  const keys = Array.from({ length: 128 }, (_, i) => `10.0.0.${i}:80`);
  const mine = keys.map((key) => claimed(first, key));
  const theirs = keys.toReversed().map((key) => claimed(second, key));
  for (const [i, load] of mine.entries()) load.add(i + 1);
  assert.deepEqual(
    theirs.toReversed().map((load) => load.calls),
    keys.map((_, i) => i + 1),
  );
});

test("threads at once: no call is lost, a limit is never exceeded, and dead threads leave nothing", async () => {
  const count = 3;
  const memory = SharedLoads.memoryFor(count + 1, 256);
  const meeting = new SharedArrayBuffer(4);
  const code = `
    const { workerData: { memory, meeting, index, module }, parentPort } = require("node:worker_threads");
    const arrived = new Int32Array(meeting);
    /** Returns when all threads have called it as often. */
    function meet(all) {
      Atomics.add(arrived, 0, 1);
      Atomics.notify(arrived, 0);
      for (let now = Atomics.load(arrived, 0); now < all; now = Atomics.load(arrived, 0)) Atomics.wait(arrived, 0, now);
    }
    import(module).then(({ SharedLoads }) => {
      const loads = new SharedLoads(memory, index);
      parentPort.once("message", () => {
        const held = new Map();
        meet(3);
        for (let i = 0; i < 10000; i++) {
          const key = "endpoint " + (i * [1, 3, 7][index]) % 50;
          held.get(key)?.release();
          held.set(key, loads.claim(key));
        }
        // Endpoints that no other thread has, 20 at a time.
        const own = [];
        let mixed = 0;
        for (let i = 0; i < 10000; i++) {
          const load = loads.claim("own " + index + " " + i);
          load.add(1);
          if (load.calls !== 1) mixed++;
          own.push(load);
          if (own.length > 20) own.shift().release();
        }
        for (const load of own) load.release();
        const [busy] = held.values();
        meet(6);
        for (let i = 0; i < 3000000; i++) busy.add(i % 3 === 2 ? -1 : 1);
        const limited = loads.claim("limited");
        let admitted = 0;
        for (let i = 0; i < 300000; i++) {
          limited.add(1);
          if (limited.exactCalls <= 100000) admitted++;
          else limited.add(-1);
        }
        parentPort.postMessage({ admitted, mixed });
      });
      parentPort.postMessage("ready");
    });`;
  const module = new URL("shared-loads.ts", import.meta.url).href;
  const threads = Array.from(
    { length: count },
    (_, index) => new Worker(code, { eval: true, workerData: { memory, meeting, index, module } }),
  );
  const next = (thread: Worker) =>
    new Promise<unknown>((resolve, reject) => thread.once("message", resolve).once("error", reject));
  await Promise.all(threads.map(next));
  const answers = threads.map(next);
  for (const thread of threads) thread.postMessage("go");
  const results = (await Promise.all(answers)) as { readonly admitted: number; readonly mixed: number }[];
  const all = results.reduce((sum, { admitted }) => sum + admitted, 0);
  // A thread that is over the limit for a moment may keep the others from the last place.
  assert.ok(all <= 100_000 && all > 100_000 - count, `${all} are admitted`);
  assert.deepEqual(
    results.map(({ mixed }) => mixed),
    [0, 0, 0],
    "two endpoints had the same row",
  );
  const mine = new SharedLoads(memory, count);
  const endpoints = Array.from({ length: 50 }, (_, i) => claimed(mine, `endpoint ${i}`));
  const sum = (): number => endpoints.reduce((calls, load) => calls + load.calls, 0);
  // Of three calls each, one has ended.
  assert.equal(sum(), count * (3_000_000 / 3));
  await Promise.all(threads.map((thread) => thread.terminate()));
  for (let index = 0; index < count; index++) mine.forget(index);
  assert.equal(sum(), 0);
  assert.equal(claimed(mine, "limited").calls, 0);
});
