import assert from "node:assert/strict";
import { test } from "node:test";
import { LogThrottle } from "./log-throttle.ts";

test("the first is told, then one in each interval with the number of those that were not", () => {
  let now = 0;
  const seldom = new LogThrottle(1000, () => now);
  const told: [number, number][] = [];
  for (now = 0; now <= 3500; now += 250) seldom.tell((kept) => told.push([now, kept]));
  assert.deepEqual(told, [
    [0, 0],
    [1000, 3],
    [2000, 3],
    [3000, 3],
  ]);
  now = 60_000;
  seldom.tell((kept) => told.push([now, kept]));
  assert.deepEqual(told.at(-1), [60_000, 2]);
});
