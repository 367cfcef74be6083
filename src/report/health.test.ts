import assert from "node:assert/strict";
import { test } from "node:test";
import { changeText, whyText } from "./health.ts";

const at = Date.UTC(2026, 1, 3, 4, 5, 6);
const cause = { consecutiveFailures: 5, health: 0.1 };

test("an endpoint that gets no requests says why", () => {
  assert.equal(whyText({ state: "evicted", evicted: { until: at, cause } }), "until 04:05:06, failures in a row: 5");
  assert.equal(whyText({ state: "evicted", evicted: { until: at } }), "until 04:05:06");
  assert.equal(whyText({ state: "unhealthy", evicted: { until: at }, check: { reason: "status 503" } }), "status 503");
  assert.equal(whyText({ state: "healthy", check: {} }), "");
});

test("a change of health says what happened", () => {
  assert.equal(changeText({ at, state: "evicted", forMs: 30_000, cause }), "evicted for 30.0s, failures in a row: 5");
  assert.equal(changeText({ at, state: "unhealthy", reason: "status 503" }), "unhealthy: status 503");
  assert.equal(changeText({ at, state: "healthy" }), "healthy");
});
