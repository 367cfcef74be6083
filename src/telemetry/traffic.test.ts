import assert from "node:assert/strict";
import { test } from "node:test";
import { REQUEST_BOUNDS } from "./histogram.ts";
import { EndedSeries, Traffic } from "./traffic.ts";

/** Requests by bucket: `[bucket, count]`. */
function durations(...counts: readonly (readonly [number, number])[]): Float64Array {
  const buckets = new Float64Array(REQUEST_BOUNDS.length + 1);
  for (const [bucket, count] of counts) buckets[bucket] = count;
  return buckets;
}

test("quantiles are spread evenly within their bucket, in milliseconds", () => {
  const traffic = new Traffic();
  assert.equal(traffic.quantile(0.5), undefined);
  traffic.add(durations([0, 50], [1, 50]), false);
  assert.equal(traffic.quantile(0.25), 0.5);
  assert.equal(traffic.quantile(0.5), 1);
  assert.equal(traffic.quantile(0.75), 3);
  assert.equal(traffic.quantile(1), 5);
});

test("the last bucket has no end, so its start stands for it", () => {
  const traffic = new Traffic();
  traffic.add(durations([REQUEST_BOUNDS.length, 1]), false);
  assert.equal(traffic.quantile(0.99), 80_000);
});

test("what is later does not contain what was before", () => {
  const before = new Traffic();
  before.add(durations([0, 3]), true);
  const now = new Traffic();
  now.add(durations([0, 3]), true);
  now.add(durations([2, 4]), false);
  const later = now.since(before);
  assert.deepEqual([later.requests, later.errors, later.quantile(1)], [4, 0, 10]);
});

test("series of ended threads are kept apart by all labels, though their numbers come in one array", () => {
  const ended = new EndedSeries();
  const shared = durations([0, 1]);
  ended.add(["a", "200"], shared);
  shared[0] = 5;
  ended.add(["a", "500"], shared);
  ended.add(["a", "200"], shared);
  const seen: [string, number | undefined][] = [];
  ended.each((labels, numbers) => seen.push([labels.join(" "), numbers[0]]));
  assert.deepEqual(seen, [
    ["a 200", 6],
    ["a 500", 5],
  ]);
});
