import assert from "node:assert/strict";
import { test } from "node:test";
import { ProcessCount } from "./process-count.ts";
import { SharedLoads } from "./shared-loads.ts";

function sharing(threads: number): ProcessCount[] {
  const memory = SharedLoads.memoryFor(threads, 4);
  return Array.from({ length: threads }, (_, index) => {
    const count = new ProcessCount();
    count.share(new SharedLoads(memory, index), "a");
    return count;
  });
}

test("a limit holds in one thread, and once threads share the count, in all of them", () => {
  const alone = new ProcessCount();
  assert.deepEqual([alone.begin(1), alone.begin(1)], [true, false]);
  alone.end();
  assert.equal(alone.begin(1), true);
  assert.equal(alone.begin(0), false);

  const [a, b] = sharing(2);
  assert.deepEqual([a?.begin(2), b?.begin(2), a?.begin(2), b?.begin(2)], [true, true, false, false]);
  assert.equal(b?.begin(Number.POSITIVE_INFINITY), true);
  b?.end();
  b?.end();
  assert.deepEqual([a?.begin(2), a?.begin(2)], [true, false]);
});

test("what began before the threads shared the count counts once, and after the release in its thread only", () => {
  const memory = SharedLoads.memoryFor(2, 1);
  const [mine, theirs] = [new ProcessCount(), new ProcessCount()];
  mine.begin(1);
  const loads = new SharedLoads(memory, 0);
  assert.deepEqual([mine.share(loads, "a"), mine.share(loads, "a")], [true, true]);
  theirs.share(new SharedLoads(memory, 1), "a");
  assert.deepEqual([theirs.begin(1), theirs.begin(2), theirs.begin(2)], [false, true, false]);
  mine.release();
  assert.equal(theirs.begin(2), true);
  assert.deepEqual([mine.begin(1), mine.begin(2)], [false, true]);
  mine.end();
  mine.end();
  assert.equal(theirs.begin(2), false);
  theirs.release();
  assert.notEqual(loads.claim("other"), undefined, "the row is free");
});

test("without room in the table a thread counts alone", () => {
  const memory = SharedLoads.memoryFor(2, 1);
  const loads = new SharedLoads(memory, 0);
  loads.claim("other");
  const count = new ProcessCount();
  assert.equal(count.share(loads, "a"), false);
  assert.deepEqual([count.begin(1), count.begin(1), count.isShared], [true, false, false]);
});
