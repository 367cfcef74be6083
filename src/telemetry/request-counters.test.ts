import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestCounters, readCounts } from "./request-counters.ts";

test("a table that grows is announced with what it has counted: no scrape sees a counter start again", () => {
  let row = 0;
  const seen: number[] = [];
  const counters = new RequestCounters((memory) => {
    seen.push(readCounts(new Float64Array(memory), row).requests);
  });
  row = counters.add();
  counters.count(row, 0.001, 10, 0);
  while (seen.length < 3) counters.add();
  assert.deepEqual(seen, [0, 1, 1]);
});
