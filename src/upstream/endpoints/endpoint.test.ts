import assert from "node:assert/strict";
import { test } from "node:test";
import { type Endpoint, Evictions } from "./endpoint.ts";
import { testEndpoint } from "./testing/endpoint.ts";

const notice = (key: string, ms: number) => ({ key, ms, timesEjected: 1, restoreHealth: undefined });

function fail(endpoint: Endpoint, now: number, eviction = {}, duration = 1000): boolean {
  endpoint.begin();
  return endpoint.fail(eviction, duration, now);
}

function succeed(endpoint: Endpoint, seconds = 0.1): void {
  endpoint.begin();
  endpoint.end(true, seconds);
}

test("an endpoint has the configured health after an eviction", () => {
  const endpoint = testEndpoint("a");
  assert.equal(fail(endpoint, 1000, { restoreHealth: 0.9 }), true);
  assert.equal(endpoint.isEvicted(1999), true);
  assert.equal(endpoint.health, 0.7);
  assert.equal(endpoint.isEvicted(2000), false);
  assert.equal(endpoint.health, 0.9);
});

test("each eviction in a row lasts longer by its duration; a success starts over", () => {
  const endpoint = testEndpoint("a");
  fail(endpoint, 1);
  assert.equal(endpoint.evictedUntil, 1001);
  fail(endpoint, 500);
  assert.equal(endpoint.evictedUntil, 1001, "a call that was in progress does not prolong it");
  fail(endpoint, 2000);
  assert.equal(endpoint.evictedUntil, 4000);
  assert.equal(endpoint.timesEjected, 2);
  assert.equal(endpoint.isEvicted(4000), false);
  succeed(endpoint);
  fail(endpoint, 5000);
  assert.equal(endpoint.evictedUntil, 6000);
});

test("thresholds: failures in a row including this one, or the health before it", () => {
  const counted = testEndpoint("a");
  fail(counted, 1, { consecutiveFailures: 2 });
  assert.equal(counted.isEvicted(1), false);
  succeed(counted);
  fail(counted, 1, { consecutiveFailures: 2 });
  assert.equal(counted.isEvicted(1), false);
  fail(counted, 1, { consecutiveFailures: 2 });
  assert.equal(counted.isEvicted(1), true);

  const ailing = testEndpoint("b");
  fail(ailing, 1, { healthThreshold: 0.8 });
  assert.equal(ailing.isEvicted(1), false);
  assert.equal(ailing.health, 0.7);
  fail(ailing, 1, { healthThreshold: 0.8 });
  assert.equal(ailing.isEvicted(1), true);
});

test("at the threshold: the allowed number of failures evicts, and health equal to its threshold does not", () => {
  const counted = testEndpoint("a");
  assert.equal(fail(counted, 1, { consecutiveFailures: 1 }), true);

  const ailing = testEndpoint("b");
  fail(ailing, 1, { healthThreshold: 0.7 });
  assert.equal(ailing.health, 0.7);
  assert.equal(fail(ailing, 1, { healthThreshold: 0.7 }), false);
  assert.equal(fail(ailing, 1, { healthThreshold: 0.7 }), true);
});

test("an eviction by another thread applies here too; a shorter eviction does not shorten a longer one", () => {
  const endpoint = testEndpoint("10.0.0.1:80");
  endpoint.evict({ key: "", ms: 1000, timesEjected: 2, restoreHealth: 0.5 }, 0);
  endpoint.evict({ key: "", ms: 10, timesEjected: 1, restoreHealth: 1 }, 0);
  assert.equal(endpoint.isEvicted(999), true);
  assert.equal(endpoint.isEvicted(1000), false);
  assert.equal(endpoint.health, 0.5);
  fail(endpoint, 2000);
  assert.equal(endpoint.evictedUntil, 5000, "the third in a row");
});

test("a worker that starts later gets current evictions with their remaining time", () => {
  const evictions = new Evictions();
  evictions.add(notice("a", 1000), 0);
  evictions.add(notice("b", 3000), 500);
  assert.deepEqual(evictions.current(900), [notice("a", 100), notice("b", 2600)]);
  assert.deepEqual(evictions.current(1000), [notice("b", 2500)]);
  evictions.add({ ...notice("b", 6000), timesEjected: 2 }, 3600);
  assert.deepEqual(evictions.current(3600), [{ ...notice("b", 6000), timesEjected: 2 }]);
});

test("an endpoint that is added later gets its eviction", () => {
  const evictions = new Evictions();
  evictions.add(notice("a", 1000), 0);
  evictions.add(notice("b", 1000), 0);
  assert.equal(evictions.take("c", 400), undefined);
  assert.deepEqual(evictions.take("a", 400), notice("a", 600));
  assert.equal(evictions.take("a", 400), undefined);
  assert.equal(evictions.take("b", 1000), undefined);
});
