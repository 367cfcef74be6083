import assert from "node:assert/strict";
import { test } from "node:test";
import { FairQueue } from "./fair-queue.ts";

test("owners take turns, each in their own order", () => {
  const queue = new FairQueue<string>(10);
  for (const task of ["a1", "a2", "a3", "b1", "c1", "b2"]) assert.equal(queue.add(task.charAt(0), task), undefined);
  const order = Array.from({ length: 7 }, () => queue.next());
  assert.deepEqual(order, ["a1", "b1", "c1", "a2", "b2", "a3", undefined]);
  assert.equal(queue.size, 0);
});

test("when it is full, the last task of the longest line is removed", () => {
  const queue = new FairQueue<string>(3);
  for (const task of ["a1", "a2", "b1"]) queue.add(task.charAt(0), task);
  assert.equal(queue.add("c", "c1"), "a2");
  assert.equal(queue.add("c", "c2"), "c2");
  assert.equal(queue.size, 3);
  assert.deepEqual([queue.next(), queue.next(), queue.next()], ["a1", "b1", "c1"]);
});
