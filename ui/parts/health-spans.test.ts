import assert from "node:assert/strict";
import { test } from "node:test";
import { healthSpans } from "./health-spans.ts";

test("changes divide the time into states: an eviction ends by itself, what checks found lasts", () => {
  const changes = [
    { at: 80, state: "healthy" as const },
    { at: 60, state: "unhealthy" as const, reason: "status 503" },
    { at: 20, state: "evicted" as const, forMs: 10 },
    { at: -50, state: "healthy" as const },
  ];
  assert.deepEqual(healthSpans(changes, 0, 100), [
    { from: 0, to: 20, state: "healthy" },
    { from: 20, to: 30, state: "evicted" },
    { from: 30, to: 60, state: "healthy" },
    { from: 60, to: 80, state: "unhealthy" },
    { from: 80, to: 100, state: "healthy" },
  ]);
  assert.deepEqual(healthSpans([{ at: 90, state: "evicted", forMs: 60 }], 0, 100), [
    { from: 90, to: 100, state: "evicted" },
  ]);
  assert.deepEqual(healthSpans([], 0, 100), []);
});

test("the next change cuts an eviction short", () => {
  const changes = [
    { at: 30, state: "evicted" as const, forMs: 20 },
    { at: 10, state: "evicted" as const, forMs: 60 },
  ];
  assert.deepEqual(healthSpans(changes, 0, 100), [
    { from: 10, to: 30, state: "evicted" },
    { from: 30, to: 50, state: "evicted" },
    { from: 50, to: 100, state: "healthy" },
  ]);
});
