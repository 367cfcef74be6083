import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { fc } from "../../../test/helpers/property.ts";
import { type BucketRule, createBuckets, TokenBuckets } from "./buckets.ts";
import { type Hash64, halfSipHash } from "./sip-hash.ts";

const RULE: BucketRule = { maxTokens: 3, tokensPerFill: 2, fillInterval: 1000 };

/** Buckets with a clock that the test sets. */
function buckets(memory?: SharedArrayBuffer) {
  const clock = { now: 5000 };
  const table = new TokenBuckets(memory, 0, () => clock.now);
  const takeUntilEmpty = (name: string, rule: BucketRule): number => {
    let taken = 0;
    while (table.take(name, rule)) taken++;
    return taken;
  };
  return { table, clock, takeUntilEmpty };
}

test("a bucket begins full and gets its tokens in whole intervals, at most as many as it holds", () => {
  const { table, clock, takeUntilEmpty } = buckets();
  assert.equal(takeUntilEmpty("a", RULE), 3);
  assert.deepEqual([table.remaining, table.untilFill], [0, 1000]);
  clock.now += 999;
  assert.equal(table.take("a", RULE), false);
  assert.equal(table.untilFill, 1);
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
  const { table, clock, takeUntilEmpty } = buckets(createBuckets(1));
  takeUntilEmpty("limited", { ...RULE, fillInterval: 1e9 });
  for (let i = 0; i < 1000; i++) {
    assert.equal(takeUntilEmpty(`passing ${i}`, RULE), 3);
    clock.now += 100;
  }
  assert.equal(table.take("limited", { ...RULE, fillInterval: 1e9 }), false);
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
      const { table, clock } = buckets(createBuckets(1));
      const start = clock.now;
      let admitted = 0;
      for (const [wait, asks] of list) {
        clock.now += wait;
        for (let i = 0; i < asks; i++) if (table.take("a", rule)) admitted++;
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
      const table = new TokenBuckets(workerData.memory, workerData.index);
      parentPort.once("message", () => {
        let admitted = 0;
        for (let i = 0; i < 20000; i++) if (table.take("shared", workerData.rule)) admitted++;
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
  const memory = createBuckets(1);
  const dead = new TokenBuckets(memory, 7, () => {
    throw new Error("never comes back");
  });
  // A thread that dies while it holds a lock leaves its mark there: after 64 buckets of 32 bytes.
  new Int32Array(memory)[64 * 8] = 7 + 1;
  dead.releaseLocksOf(6);
  assert.equal(new Int32Array(memory)[64 * 8], 8);
  dead.releaseLocksOf(7);
  assert.equal(buckets(memory).table.take("a", RULE), true);
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
