import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../base/durations.ts";
import { RetryBudget } from "./retry-budget.ts";

const settings = (percent: number, count: number, interval = 10_000) => ({
  percent,
  interval: ms(interval),
  minRetryRate: { count, interval: ms(1000) },
});

/** How many of `tries` retries are allowed at one time. */
function taken(budget: RetryBudget, now: number, tries: number): number {
  return Array.from({ length: tries }, () => budget.take(now)).filter((allowed) => allowed).length;
}

test("retries are at most their share of all requests, retries included", () => {
  const budget = new RetryBudget("a", settings(20, 0));
  for (let i = 0; i < 800; i++) budget.begin(100_000 + i);
  assert.equal(taken(budget, 101_000, 1000), 200);
  budget.begin(101_500);
  for (let i = 0; i < 3; i++) budget.begin(101_500);
  assert.equal(taken(budget, 102_000, 1000), 1);
});

test("requests and retries are forgotten after the interval", () => {
  const budget = new RetryBudget("a", settings(50, 0));
  for (let i = 0; i < 10; i++) budget.begin(100_000);
  assert.equal(taken(budget, 101_000, 100), 10);
  // The requests are gone, the retries are not.
  budget.begin(110_000);
  assert.equal(taken(budget, 110_000, 100), 0);
  // Long after both.
  budget.begin(500_000);
  assert.equal(taken(budget, 500_000, 100), 1);
});

test("a minimum rate is allowed whatever the share, and counts toward it", () => {
  const budget = new RetryBudget("a", settings(0, 3));
  assert.equal(taken(budget, 100_000, 100), 3);
  assert.equal(taken(budget, 100_500, 100), 0);
  assert.equal(taken(budget, 101_000, 100), 3);
  const shared = new RetryBudget("a", settings(50, 3));
  for (let i = 0; i < 4; i++) shared.begin(100_000);
  assert.equal(taken(shared, 100_000, 100), 4);
});
