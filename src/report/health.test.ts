import assert from "node:assert/strict";
import { test } from "node:test";
import { changeText, foundText, notProbed, sentText, stateText, whyText } from "./health.ts";

const at = Date.UTC(2026, 1, 3, 4, 5, 6);
const cause = { consecutiveFailures: 5, health: 0.1 };

test("an endpoint that gets no requests says why", () => {
  assert.equal(whyText({ state: "evicted", evicted: { until: at, cause } }), "until 04:05:06, failures in a row: 5");
  assert.equal(whyText({ state: "evicted", evicted: { until: at } }), "until 04:05:06");
  assert.equal(whyText({ state: "unhealthy", evicted: { until: at }, check: { reason: "status 503" } }), "status 503");
  assert.equal(whyText({ state: "healthy", check: {} }), "");
  assert.equal(
    whyText({ state: "healthy", behind: "its zone is b, that of the gateway a" }),
    "its zone is b, that of the gateway a",
  );
});

test("a state that only some replicas see has their names", () => {
  assert.equal(stateText({ state: "healthy" }), "healthy");
  assert.equal(stateText({ state: "evicted", stateAt: ["web-1", "web-3"] }), "evicted at web-1, web-3");
});

test("an endpoint that several replicas have probed counts once", () => {
  const probe = { address: "10.0.0.7:80", healthy: true, duration: 1, sent: { type: "tcp" } } as const;
  assert.equal(notProbed(3, [probe, probe, { ...probe, address: "10.0.0.8:80" }]), 1);
  assert.equal(notProbed(1, [probe, { ...probe, address: "10.0.0.8:80" }]), 0, "replicas may know different ones");
});

test("a change of health says what happened", () => {
  assert.equal(changeText({ at, state: "evicted", forMs: 30_000, cause }), "evicted for 30.0s, failures in a row: 5");
  assert.equal(changeText({ at, state: "unhealthy", reason: "status 503" }), "unhealthy: status 503");
  assert.equal(changeText({ at, state: "healthy" }), "healthy");
});

test("a probe says what it sent and what came back", () => {
  assert.equal(sentText({ type: "http", path: "/healthz" }), "GET /healthz");
  assert.equal(sentText({ type: "http", path: "/", host: "a.example" }), "GET / for a.example");
  assert.equal(sentText({ type: "grpc", service: "shop.Cart" }), "grpc.health.v1.Health/Check of shop.Cart");
  const probe = { address: "10.0.0.7:80", sent: { type: "tcp" }, duration: 1 } as const;
  assert.equal(foundText({ ...probe, healthy: false, status: 503, reason: "status 503" }), "status 503");
  assert.equal(foundText({ ...probe, healthy: true, status: "SERVING" }), "SERVING");
  assert.equal(foundText({ ...probe, healthy: true }), "connected");
  assert.equal(foundText({ ...probe, healthy: false, reason: "connect ECONNREFUSED" }), "connect ECONNREFUSED");
});
