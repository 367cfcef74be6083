import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { fc } from "../../../test/helpers/property.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import type { ShareLayout } from "../limit-memory/share-table.ts";
import { type Hash64, halfSipHash } from "../limit-memory/sip-hash.ts";
import { BucketSets } from "./bucket-sets.ts";
import { type BucketRule, createBuckets, TokenBuckets } from "./buckets.ts";

const RULE: BucketRule = { maxTokens: 3, tokensPerFill: 2, fillInterval: 1000 };

/** Room for one limit whose clients choose keys: 64 of them. */
const SMALL: ShareLayout = {
  common: 1,
  sizes: [
    { shares: 1, sets: 1 },
    { shares: 0, sets: 0 },
  ],
};

/** Buckets with a clock that the test sets. `takeUntilEmpty` uses those of keys of one limit. */
function buckets(layout?: ShareLayout) {
  const clock = { now: 5000 };
  const metrics = new Metrics();
  const table = new TokenBuckets(layout && createBuckets(layout), 0, metrics, () => clock.now);
  const limit = table.of("limit");
  const takeUntilEmpty = (key: string | undefined, rule: BucketRule, of = limit): number => {
    let taken = 0;
    while (of.take(rule, key)) taken++;
    return taken;
  };
  return { table, limit, clock, metrics, takeUntilEmpty };
}

test("a bucket begins full and gets its tokens in whole intervals, at most as many as it holds", () => {
  const { limit, clock, takeUntilEmpty } = buckets();
  assert.equal(takeUntilEmpty("a", RULE), 3);
  assert.deepEqual([limit.remaining, limit.untilFill], [0, 1000]);
  clock.now += 999;
  assert.equal(limit.take(RULE, "a"), false);
  assert.equal(limit.untilFill, 1);
  clock.now += 1;
  assert.equal(takeUntilEmpty("a", RULE), 2);
  clock.now += 1500;
  assert.equal(takeUntilEmpty("a", RULE), 2);
  clock.now += 500;
  assert.equal(takeUntilEmpty("a", RULE), 2);
  clock.now += 60_000;
  assert.equal(takeUntilEmpty("a", RULE), 3);
});

test("each name has its own bucket; one that is never refilled stays empty", () => {
  const { clock, takeUntilEmpty } = buckets();
  assert.equal(takeUntilEmpty("a", RULE), 3);
  assert.equal(takeUntilEmpty("b", RULE), 3);
  const never = { ...RULE, tokensPerFill: 0 };
  assert.equal(takeUntilEmpty("c", never), 3);
  clock.now += 1e9;
  assert.equal(takeUntilEmpty("c", never), 0);
  assert.equal(takeUntilEmpty("d", { ...never, maxTokens: 0 }), 0);
});

test("a changed rule applies to the tokens in the bucket", () => {
  const { clock, takeUntilEmpty } = buckets();
  takeUntilEmpty("a", { ...RULE, maxTokens: 10 });
  clock.now += 1000;
  assert.equal(takeUntilEmpty("a", { ...RULE, maxTokens: 1, tokensPerFill: 1 }), 1);
});

test("full buckets make room for any number of names, and no limited client is forgotten", () => {
  const { limit, clock, metrics, takeUntilEmpty } = buckets(SMALL);
  takeUntilEmpty("limited", { ...RULE, fillInterval: 1e9 });
  for (let i = 0; i < 1000; i++) {
    assert.equal(takeUntilEmpty(`passing ${i}`, RULE), 3);
    clock.now += 100;
  }
  assert.equal(limit.take({ ...RULE, fillInterval: 1e9 }, "limited"), false);
  assert.deepEqual(metrics.snapshot().local_rate_limit_overflow_total ?? [], []);
});

const MINUTE: BucketRule = { maxTokens: 5, tokensPerFill: 5, fillInterval: 60_000 };

test("a flood of keys on one limit does not lift another", () => {
  const { table, takeUntilEmpty } = buckets();
  const login = table.of("login");
  const plain = table.of("plain");
  const api = table.of("api");
  assert.equal(takeUntilEmpty("203.0.113.9", MINUTE, login), 5);
  assert.equal(takeUntilEmpty(undefined, MINUTE, plain), 5);
  for (let i = 0; i < 130_000; i++) api.take(MINUTE, `random ${i}`);
  assert.equal(login.take(MINUTE, "203.0.113.9"), false);
  assert.equal(plain.take(MINUTE), false);
});

test("keys that find no room are counted together, those that have a bucket keep it; the metric counts them", () => {
  const { limit, clock, metrics, takeUntilEmpty } = buckets(SMALL);
  for (let i = 0; i < 64; i++) assert.equal(takeUntilEmpty(`key ${i}`, MINUTE), 5);
  let admitted = 0;
  for (let i = 64; i < 1000; i++) if (limit.take(MINUTE, `key ${i}`)) admitted++;
  assert.equal(admitted, 5);
  assert.equal(limit.take(MINUTE, "key 0"), false);
  const [overflow] = metrics.snapshot().local_rate_limit_overflow_total ?? [];
  assert.deepEqual([overflow?.labels, overflow?.value], [["limit"], 936]);
  clock.now += 60_000;
  assert.equal(takeUntilEmpty("key 999", MINUTE), 5);
});

test("a limit without a share counts its keys together, until another one is idle", () => {
  const { table, clock, takeUntilEmpty } = buckets(SMALL);
  const other = table.of("other");
  assert.equal(takeUntilEmpty("a", MINUTE), 5);
  clock.now += 2000;
  assert.equal(takeUntilEmpty("a", MINUTE, other) + takeUntilEmpty("b", MINUTE, other), 5);
  clock.now += 60_000;
  assert.equal(takeUntilEmpty("a", MINUTE, other), 5);
  assert.equal(takeUntilEmpty("b", MINUTE, other), 5);
  // The first limit notices that the other limit has claimed its share.
  assert.equal(takeUntilEmpty("a", MINUTE) + takeUntilEmpty("b", MINUTE), 5);
});

test("a limit without a share looks for one again after a second, not for each request", () => {
  const { table, clock, takeUntilEmpty } = buckets(SMALL);
  const other = table.of("other");
  assert.equal(takeUntilEmpty("a", RULE), 3);
  // The share is idle in 2000 ms; the other limit looks just before that.
  clock.now += 1500;
  assert.equal(takeUntilEmpty("a", RULE, other), 3);
  clock.now += 999;
  assert.equal(takeUntilEmpty("b", RULE, other), 0);
  clock.now += 1;
  assert.equal(takeUntilEmpty("b", RULE, other), 3);
});

test("a share that was claimed a moment ago is kept until it is used", () => {
  const sets = new BucketSets(createBuckets(SMALL), 0);
  const [one, two] = [
    { low: 1, high: 1 },
    { low: 2, high: 2 },
  ];
  assert.deepEqual([sets.claim(one, 5000), sets.claim(two, 5999), sets.claim(two, 6000)], [0, -1, 0]);
});

test("limits beyond the large shares get small ones, and do not touch those of others", () => {
  const { table, takeUntilEmpty } = buckets({
    common: 4,
    sizes: [
      { shares: 2, sets: 2 },
      { shares: 200, sets: 1 },
    ],
  });
  const limits = Array.from({ length: 202 }, (_, i) => table.of(`limit ${i}`));
  for (const limit of limits) assert.equal(takeUntilEmpty("a", MINUTE, limit), 5);
  for (const limit of limits) for (let i = 0; i < 70; i++) limit.take(MINUTE, `random ${i}`);
  for (const limit of limits) assert.equal(limit.take(MINUTE, "a"), false);
});

test("the first small share holds as many buckets as the others", () => {
  const sizes = [
    { shares: 1, sets: 2 },
    { shares: 2, sets: 1 },
  ] as const;
  const { table } = buckets({ common: 4, sizes });
  const rule: BucketRule = { maxTokens: 1, tokensPerFill: 1, fillInterval: 60_000 };
  const admitted = ["large", "small", "other"].map((name) => {
    const limit = table.of(name);
    let count = 0;
    for (let i = 0; i < 1000; i++) if (limit.take(rule, `key ${i}`)) count++;
    return count;
  });
  // One more, for keys without room.
  assert.deepEqual(admitted, [129, 65, 65]);
});

test("a reload and other threads find the share of a limit again", () => {
  const { table, clock } = buckets(SMALL);
  const other = new TokenBuckets(table.memory, 1, undefined, () => clock.now);
  for (let i = 0; i < 5; i++) table.of("limit").take(MINUTE, "a");
  assert.equal(table.of("limit").take(MINUTE, "a"), false);
  assert.equal(other.of("limit").take(MINUTE, "a"), false);
});

test("a bucket admits what tokens and time allow, in any pattern", () => {
  const steps = fc.array(fc.tuple(fc.nat(3000), fc.integer({ min: 1, max: 8 })), { maxLength: 30 });
  const rules = fc.record({
    maxTokens: fc.nat(9),
    tokensPerFill: fc.nat(9),
    fillInterval: fc.integer({ min: 1, max: 2000 }),
  });
  fc.assert(
    fc.property(rules, steps, (rule, list) => {
      fc.pre(rule.tokensPerFill <= rule.maxTokens);
      const { limit, clock } = buckets(SMALL);
      const start = clock.now;
      let admitted = 0;
      for (const [wait, asks] of list) {
        clock.now += wait;
        for (let i = 0; i < asks; i++) if (limit.take(rule, "a")) admitted++;
        const fills = Math.floor((clock.now - start) / rule.fillInterval);
        assert.ok(admitted <= rule.maxTokens + fills * rule.tokensPerFill);
      }
    }),
  );
});

test("threads together admit exactly what the bucket holds", { timeout: 60_000 }, async () => {
  const memory = createBuckets();
  const code = `
    const { workerData, parentPort } = require("node:worker_threads");
    import(workerData.module).then(({ TokenBuckets }) => {
      const limit = new TokenBuckets(workerData.memory, workerData.index).of("limit");
      parentPort.once("message", () => {
        let admitted = 0;
        for (let i = 0; i < 20000; i++) if (limit.take(workerData.rule, "shared")) admitted++;
        parentPort.postMessage(admitted);
      });
      parentPort.postMessage("ready");
    });`;
  const rule = { maxTokens: 50_000, tokensPerFill: 1, fillInterval: 1e9 };
  const module = new URL("buckets.ts", import.meta.url).href;
  const workers = [1, 2, 3, 4].map(
    (index) => new Worker(code, { eval: true, workerData: { memory, index, rule, module } }),
  );
  const next = (worker: Worker) =>
    new Promise<unknown>((resolve, reject) => worker.once("message", resolve).once("error", reject));
  await Promise.all(workers.map(next));
  const answers = workers.map(next);
  for (const worker of workers) worker.postMessage("go");
  const admitted = (await Promise.all(answers)) as number[];
  assert.equal(
    admitted.reduce((sum, count) => sum + count, 0),
    rule.maxTokens,
  );
  await Promise.all(workers.map((worker) => worker.terminate()));
});

test("the lock of a thread that has died is released", () => {
  const { table, limit } = buckets(SMALL);
  limit.take(RULE, "a");
  // A thread that dies while it holds a lock leaves its mark there; the locks are the last words: two sets, and the shares.
  const words = new Int32Array(table.memory);
  const locks = words.subarray(words.length - 3);
  locks.fill(7 + 1);
  table.releaseLocksOf(6);
  assert.deepEqual([...locks], [8, 8, 8]);
  table.releaseLocksOf(7);
  assert.deepEqual([limit.take(RULE, "a"), limit.take(RULE)], [true, true]);
});

test("the hash depends on every character, the length and the key", () => {
  const hash = (text: string, key = 1): string => {
    const into: Hash64 = { low: 0, high: 0 };
    halfSipHash(key, 2, text, into);
    return `${into.low} ${into.high}`;
  };
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      assert.equal(hash(a) === hash(b), a === b);
      assert.notEqual(hash(a), hash(a, 3));
    }),
  );
  for (const text of ["", "\0", "\0\0", "a", "a\0", "ab"]) assert.notEqual(hash(text), hash(`${text}\0`));
});
