import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { Metrics } from "../../telemetry/metrics.ts";
import { CountSlots } from "./count-slots.ts";
import { type CountedRequest, createCounts, type LimitCounts, RequestCounts } from "./request-counts.ts";

/** Room for one limit whose clients choose keys: 64 of them. */
const SMALL = {
  common: 1,
  sizes: [
    { shares: 1, sets: 1 },
    { shares: 0, sets: 0 },
  ],
} as const;

/** Room for three limits: one with 128 keys, two with 64. */
const THREE = {
  common: 4,
  sizes: [
    { shares: 1, sets: 2 },
    { shares: 2, sets: 1 },
  ],
} as const;

/** Begins requests until one is not counted. */
function fill(limit: LimitCounts, max: number, key?: string): CountedRequest[] {
  const begun: CountedRequest[] = [];
  for (let next = limit.begin(max, key); next !== undefined; next = limit.begin(max, key)) begun.push(next);
  return begun;
}

function endAll(requests: readonly CountedRequest[]): void {
  for (const request of requests) request.end();
}

test("each key and each limit has its own count, which ends with its requests", () => {
  const counts = new RequestCounts();
  const limit = counts.of("limit");
  const a = fill(limit, 3, "a");
  assert.deepEqual([a.length, limit.count], [3, 3]);
  assert.equal(fill(limit, 2, "b").length, 2);
  assert.equal(fill(limit, 2).length, 2);
  assert.equal(fill(counts.of("other"), 2, "a").length, 2);
  a[0]?.end();
  // Whoever ends a request twice must not end another one.
  a[0]?.end();
  assert.equal(fill(limit, 3, "a").length, 1);
  endAll(a);
  assert.notEqual(limit.begin(2, "a"), undefined);
  assert.equal(limit.count, 2);
});

test("a limit that is lowered counts those that began before", () => {
  const limit = new RequestCounts().of("limit");
  const begun = fill(limit, 5, "a");
  assert.equal(limit.begin(2, "a"), undefined);
  assert.equal(limit.count, 5);
  endAll(begun.slice(0, 4));
  assert.notEqual(limit.begin(2, "a"), undefined);
});

test("a reload and other threads find the counts again; a rehearsal sees them and counts nothing", () => {
  const counts = new RequestCounts(createCounts(2));
  const begun = fill(counts.of("limit"), 3, "a").concat(fill(counts.of("limit"), 3));
  const other = new RequestCounts(counts.memory, 1);
  const rehearsal = new RequestCounts(counts.memory, 0, undefined, false);
  for (const each of [counts, other, rehearsal]) {
    assert.equal(each.of("limit").begin(3, "a"), undefined);
    assert.equal(each.of("limit").begin(3), undefined);
    const limit = each.of("limit");
    const one = limit.begin(4, "a");
    assert.deepEqual([one === undefined, limit.count], [false, 4]);
    one?.end();
  }
  for (let i = 0; i < 9; i++) assert.notEqual(rehearsal.of("limit").begin(4, "a"), undefined);
  assert.notEqual(rehearsal.of("unused").begin(1, "a"), undefined);
  endAll(begun);
  assert.equal(fill(other.of("limit"), 3, "a").length, 3);
});

test("keys that find no room are counted together, those that have a count keep it; the metric counts them", () => {
  const metrics = new Metrics();
  const memory = createCounts(1, SMALL);
  const limit = new RequestCounts(memory, 0, metrics).of("limit");
  const begun = Array.from({ length: 64 }, (_, i) => fill(limit, 2, `key ${i}`));
  assert.ok(begun.every((each) => each.length === 2));
  const rehearsed = new RequestCounts(memory, 0, undefined, false).of("limit");
  assert.notEqual(rehearsed.begin(2, "key 64"), undefined);
  const further = Array.from({ length: 100 }, (_, i) => limit.begin(2, `key ${64 + i}`)).filter((each) => each);
  assert.equal(further.length, 2);
  assert.equal(rehearsed.begin(2, "key 64"), undefined);
  assert.equal(limit.begin(2, "key 0"), undefined);
  const [overflow] = metrics.snapshot().concurrency_limit_overflow_total ?? [];
  assert.deepEqual([overflow?.labels, overflow?.value], [["limit"], 100]);
  endAll(begun[0] ?? []);
  assert.equal(fill(limit, 2, "key 999").length, 2);
});

test("a flood of keys on one limit takes nothing from another, and no share is given away in use", () => {
  const counts = new RequestCounts(createCounts(1, THREE));
  const limits = ["large", "small", "third"].map((name) => counts.of(name));
  const first = limits.map((limit) => limit.begin(1, "client"));
  assert.ok(first.every((each) => each !== undefined));
  const flooded = limits.map(
    (limit) => Array.from({ length: 1000 }, (_, i) => limit.begin(1, `random ${i}`)).filter((each) => each).length,
  );
  // With the client, one for each slot; and one that stands for all others.
  assert.deepEqual(flooded, [128, 64, 64]);
  assert.ok(limits.every((limit) => limit.begin(1, "client") === undefined));
  const late = counts.of("late");
  assert.deepEqual([fill(late, 1, "a").length, fill(late, 1, "b").length], [1, 0], "it has no share");
});

test("a limit gets the share of another that counts nothing, which finds a new one", () => {
  const counts = new RequestCounts(createCounts(1, SMALL));
  const one = counts.of("one");
  const two = counts.of("two");
  endAll(fill(one, 1, "a"));
  const begun = [...fill(two, 1, "a"), ...fill(two, 1, "b")];
  assert.equal(begun.length, 2);
  // The first limit counts its keys together now.
  assert.equal(fill(one, 1, "a").length + fill(one, 1, "b").length, 1);
});

test("a share goes to another limit when its requests have ended, and no share in use does", () => {
  const counts = new RequestCounts(createCounts(1, THREE));
  const limits = ["large", "small", "third"].map((name) => counts.of(name));
  const [, , third] = limits.map((limit) => limit.begin(1, "a"));
  third?.end();
  const late = counts.of("late");
  assert.deepEqual([fill(late, 1, "a").length, fill(late, 1, "b").length], [1, 1]);
  assert.ok(limits.slice(0, 2).every((limit) => limit.begin(1, "a") === undefined));
});

test("the share of a limit is its own, also where another hash differs in half of its bits", () => {
  const slots = new CountSlots(createCounts(1, THREE), 0);
  const owners = [
    { low: 1, high: 1 },
    { low: 1, high: 2 },
    { low: 2, high: 1 },
  ];
  assert.deepEqual(
    owners.map((owner) => slots.claim(owner)),
    [0, 1, 2],
  );
});

test("limits beyond the number of shares keep different ones", () => {
  const counts = new RequestCounts(createCounts(1, THREE));
  const [one, two] = [counts.of("one"), counts.of("two")];
  // None of them is claimed while others were never used.
  for (let i = 0; i < 10; i++) {
    endAll(fill(one, 1, "a"));
    endAll(fill(two, 1, "a"));
  }
  const begun = [one, two].map((limit) => Array.from({ length: 64 }, (_, i) => limit.begin(1, `${i}`)));
  assert.ok(begun.flat().filter((each) => each !== undefined).length >= 64 + 64 - 1);
});

test("what a dead thread has counted ends, also in shares; what others have counted stays", () => {
  const counts = new RequestCounts(createCounts(2));
  const dead = new RequestCounts(counts.memory, 1);
  const ours = [counts.of("limit").begin(9, "a"), counts.of("limit").begin(9)];
  assert.ok(ours.every((each) => each !== undefined));
  assert.deepEqual([fill(dead.of("limit"), 9, "a").length, fill(dead.of("limit"), 9).length], [8, 8]);
  assert.equal(fill(dead.of("another"), 9, "b").length, 9);
  assert.equal(counts.of("limit").begin(9, "a"), undefined);
  counts.endWorker(1);
  assert.deepEqual([fill(counts.of("limit"), 9, "a").length, fill(counts.of("limit"), 9).length], [8, 8]);
  assert.equal(fill(counts.of("another"), 9, "b").length, 9);
});

test("the lock of a thread that has died is released", () => {
  const counts = new RequestCounts(createCounts(1, SMALL));
  // A thread that dies while it holds a lock leaves its mark there; the locks are the last words: a set, a share and that of claims.
  const words = new Int32Array(counts.memory);
  words.fill(1, words.length - 3);
  counts.endWorker(0);
  const limit = counts.of("limit");
  assert.ok(limit.begin(1, "a") !== undefined && limit.begin(1) !== undefined);
});

test("threads together never exceed a limit, and nothing is left when all requests have ended", {
  timeout: 60_000,
}, async () => {
  const memory = createCounts(4, SMALL);
  const code = `
    const { workerData, parentPort } = require("node:worker_threads");
    import(workerData.module).then(({ RequestCounts }) => {
      const { memory, index, seen, max } = workerData;
      const limit = new RequestCounts(memory, index).of("limit");
      const running = new Int32Array(seen);
      parentPort.once("message", () => {
        let most = 0;
        for (let i = 0; i < 100000; i++) {
          const request = limit.begin(max, "shared");
          if (request === undefined) continue;
          most = Math.max(most, Atomics.add(running, 0, 1) + 1);
          Atomics.sub(running, 0, 1);
          request.end();
        }
        parentPort.postMessage(most);
      });
      parentPort.postMessage("ready");
    });`;
  const max = 2;
  const seen = new SharedArrayBuffer(4);
  const module = new URL("request-counts.ts", import.meta.url).href;
  const workers = [0, 1, 2, 3].map(
    (index) => new Worker(code, { eval: true, workerData: { memory, index, seen, max, module } }),
  );
  const next = (worker: Worker) =>
    new Promise<unknown>((resolve, reject) => worker.once("message", resolve).once("error", reject));
  await Promise.all(workers.map(next));
  const answers = workers.map(next);
  for (const worker of workers) worker.postMessage("go");
  const most = (await Promise.all(answers)) as number[];
  assert.ok(Math.max(...most) <= max, String(most));
  assert.equal(fill(new RequestCounts(memory).of("limit"), max, "shared").length, max);
  await Promise.all(workers.map((worker) => worker.terminate()));
});
