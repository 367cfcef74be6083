import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { testEndpoint } from "../endpoints/testing/endpoint.ts";
import { BucketBalancer } from "./balancer.ts";
import { leastRequests } from "./least-requests.ts";
import { roundRobin } from "./round-robin.ts";
import { slowStart } from "./slow-start.ts";

const WINDOW = 1000;

/** How many of 100 choices in turn go to each endpoint at this time. */
function shares(endpoints: readonly Endpoint[], now: number): Record<string, number> {
  let draws = 0;
  // Evenly from 0 to 1, in an order that has nothing to do with turns.
  const random = (): number => ((draws++ * 37) % 100) / 100;
  const pick = slowStart(
    roundRobin(() => 0),
    WINDOW,
    random,
    () => now,
  );
  const balancer = new BucketBalancer([[endpoints]], pick, { now: () => now });
  const counts: Record<string, number> = {};
  for (let i = 0; i < 200; i++) {
    const key = balancer.choose()?.key ?? "none";
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

function endpointsAt(times: Readonly<Record<string, number>>): Endpoint[] {
  return Object.entries(times).map(([key, startedAt]) => Object.assign(testEndpoint(key), { startedAt }));
}

test("the share of a new endpoint grows with time to its full size", () => {
  const endpoints = endpointsAt({ old: 0, new: 10_000 });
  assert.deepEqual(shares(endpoints, 10_000), { old: 200 });
  assert.deepEqual(shares(endpoints, 10_500), { old: 150, new: 50 });
  assert.deepEqual(shares(endpoints, 11_000), { old: 100, new: 100 });
});

test("while all endpoints that take calls are new, none is held back", () => {
  assert.deepEqual(shares(endpointsAt({ a: 10_000, b: 10_000 }), 10_000), { a: 100, b: 100 });
  const [old, fresh] = endpointsAt({ old: 0, new: 10_000 }) as [Endpoint, Endpoint];
  old.evict({ key: old.key, ms: 60_000, timesEjected: 1, restoreHealth: undefined }, 10_000);
  assert.deepEqual(shares([old, fresh], 10_000), { new: 200 });
});

test("an endpoint begins again when its eviction ends, and when its health checks pass again", () => {
  const endpoint = Object.assign(testEndpoint("a"), { startedAt: 0 });
  endpoint.evict({ key: endpoint.key, ms: 100, timesEjected: 1, restoreHealth: undefined }, 1000);
  assert.equal(endpoint.isEvicted(1100), false);
  assert.equal(endpoint.startedAt, 1100);
  endpoint.check = { healthy: undefined, reason: "", passed: 0, failed: 0 };
  endpoint.startedAt = 0;
  endpoint.setHealth({ healthy: true, reason: "" });
  assert.equal(endpoint.startedAt, 0, "the first probe says nothing new");
  endpoint.setHealth({ healthy: false, reason: "refused" });
  endpoint.setHealth({ healthy: true, reason: "" });
  assert.ok(endpoint.startedAt > 0);
});

test("the clock is the one of endpoints", () => {
  const [old, fresh] = [Object.assign(testEndpoint("old"), { startedAt: -1e9 }), testEndpoint("new")];
  const balancer = new BucketBalancer(
    [[[fresh, old]]],
    slowStart(
      leastRequests(() => 0),
      3_600_000,
      () => 0.5,
    ),
  );
  assert.equal(balancer.choose(), old);
});
