import assert from "node:assert/strict";
import { test } from "node:test";
import { GrownHeap } from "./grown-heap.ts";

const MIB = 1024 * 1024;

test("a heap is collected when it has grown since the last time, unless it is large", () => {
  let used = 20 * MIB;
  let live = 20 * MIB;
  let collections = 0;
  const heap = new GrownHeap(
    () => used,
    () => {
      collections++;
      used = live;
    },
  );
  const trimmedAt = (bytes: number): number => {
    used = bytes;
    heap.trim();
    return collections;
  };
  assert.deepEqual(
    [20, 22, 18, 20].map((mib) => trimmedAt(mib * MIB)),
    [0, 0, 0, 0],
  );
  live = 19 * MIB;
  assert.equal(trimmedAt(22 * MIB), 1);
  // What is in use now does not count as growth.
  assert.deepEqual(
    [21, 23].map((mib) => trimmedAt(mib * MIB)),
    [1, 2],
  );
  assert.equal(trimmedAt(100 * MIB), 2);
});
