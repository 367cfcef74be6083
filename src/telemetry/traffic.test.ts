import assert from "node:assert/strict";
import { test } from "node:test";
import { REQUEST_BOUNDS } from "./histogram.ts";
import { SeriesTraffic } from "./request-counters.ts";
import { EndedSeries, Traffic } from "./traffic.ts";

/** Requests by bucket: `[bucket, count]`. */
function durations(...counts: readonly (readonly [number, number])[]): SeriesTraffic {
  const traffic = new SeriesTraffic();
  for (const [bucket, count] of counts) traffic.durations[bucket] = count;
  return traffic;
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

test("failed calls of gRPC are errors, once, and the latest request is that of all series", () => {
  const traffic = new Traffic();
  const calls = durations([0, 3]);
  calls.failedCalls = 2;
  calls.latest = 1000;
  traffic.add(calls, false);
  assert.deepEqual([traffic.requests, traffic.errors], [3, 2]);
  calls.latest = 500;
  traffic.add(calls, true);
  assert.deepEqual([traffic.errors, traffic.latest], [5, 1000]);
});

test("series of ended threads are kept apart by all labels, though their numbers come in one object", () => {
  const ended = new EndedSeries();
  const shared = durations([0, 1]);
  shared.failedCalls = 1;
  shared.latest = 2000;
  ended.add(["a", "200"], shared);
  shared.durations[0] = 5;
  shared.latest = 1000;
  ended.add(["a", "500"], shared);
  ended.add(["a", "200"], shared);
  const seen: [string, number | undefined, number, number][] = [];
  ended.each((labels, { durations, failedCalls, latest }) =>
    seen.push([labels.join(" "), durations[0], failedCalls, latest]),
  );
  assert.deepEqual(seen, [
    ["a 200", 6, 2, 2000],
    ["a 500", 5, 1, 1000],
  ]);
});
