import assert from "node:assert/strict";
import { test } from "node:test";
import { PowerOfTwoChoices, SingleEndpoint } from "./balancer.ts";
import type { Endpoint } from "./endpoint.ts";
import { rendezvous } from "./rendezvous.ts";
import { testEndpoint } from "./testing/endpoint.ts";

/** Gives the numbers in turn, over and over. */
function cycle(...numbers: number[]): () => number {
  let at = 0;
  return () => numbers[at++ % numbers.length] as number;
}

/** The same numbers at every run. */
function seeded(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

function fail(endpoint: Endpoint, now: number, eviction = {}, duration = 1000): void {
  endpoint.begin();
  endpoint.fail(eviction, duration, now);
}

function succeed(endpoint: Endpoint, seconds = 0.1): void {
  endpoint.begin();
  endpoint.end(true, seconds);
}

test("of two draws the endpoint with the better score is chosen", () => {
  const [slow, quick] = [testEndpoint("slow"), testEndpoint("quick")];
  succeed(slow, 2);
  succeed(quick, 0.1);
  assert.equal(new PowerOfTwoChoices([[slow, quick]], cycle(0, 0.9)).choose(), quick);
  assert.equal(new PowerOfTwoChoices([[slow, quick]], cycle(0.9, 0)).choose(), quick);
  assert.equal(new PowerOfTwoChoices([[slow, quick]], cycle(0)).choose(), slow);
});

test("draws are weighted by capacity; an endpoint without capacity is never chosen", () => {
  const [big, small, drained] = [testEndpoint("big", 3), testEndpoint("small", 1), testEndpoint("drained", 0)];
  const balancer = new PowerOfTwoChoices([[drained, big, small]], cycle(0.74));
  assert.equal(balancer.choose(), big);
  assert.equal(new PowerOfTwoChoices([[drained, big, small]], cycle(0.76)).choose(), small);
  assert.equal(new PowerOfTwoChoices([[drained]], cycle(0)).choose(), undefined);
  assert.equal(new PowerOfTwoChoices([], cycle(0)).choose(), undefined);
});

test("an evicted endpoint is not chosen until its time is over; then with the health that is configured", () => {
  let now = 1000;
  const [a, b] = [testEndpoint("a"), testEndpoint("b")];
  const balancer = new PowerOfTwoChoices([[a, b]], seeded(), () => now);
  const chosen = () => new Set(Array.from({ length: 50 }, () => balancer.choose()?.key));
  fail(a, now, { restoreHealth: 1 });
  assert.deepEqual(chosen(), new Set(["b"]));
  assert.deepEqual(balancer.candidates(), [b]);
  now = 1999;
  assert.deepEqual(chosen(), new Set(["b"]));
  now = 2000;
  assert.deepEqual(chosen(), new Set(["a", "b"]));
  assert.equal(a.health, 1);
});

test("when all are evicted, they are used all the same", () => {
  const [a, b] = [testEndpoint("a"), testEndpoint("b")];
  const balancer = new PowerOfTwoChoices([[a], [b]], seeded(), () => 1);
  fail(a, 1);
  assert.equal(balancer.choose(), b);
  fail(b, 1);
  assert.equal(balancer.choose(), a);
  assert.deepEqual(balancer.candidates(), [a]);
  assert.equal(new SingleEndpoint(a).choose(), a);
});

test("the first bucket with active endpoints is used", () => {
  const [near, far] = [testEndpoint("near"), testEndpoint("far")];
  let now = 1;
  const balancer = new PowerOfTwoChoices([[testEndpoint("drained", 0)], [near], [far]], seeded(), () => now);
  assert.equal(balancer.choose(), near);
  fail(near, now);
  assert.equal(balancer.choose(), far);
  now = 2000;
  assert.equal(balancer.choose(), near);
});

test("each eviction in a row lasts longer by its duration; a success begins anew", () => {
  const endpoint = testEndpoint("a");
  fail(endpoint, 1);
  assert.equal(endpoint.evictedUntil, 1001);
  fail(endpoint, 500);
  assert.equal(endpoint.evictedUntil, 1001, "a call that was under way does not prolong it");
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

test("a key stays with its endpoint; when another goes, only the keys of that one move", () => {
  const endpoints = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"].map((key) => testEndpoint(key));
  const keys = Array.from({ length: 3000 }, (_, i) => Buffer.from(`user-${i}`));
  const before = keys.map((key) => rendezvous(endpoints, key));
  for (const endpoint of endpoints) {
    const share = before.filter((each) => each === endpoint).length / keys.length;
    assert.ok(share > 0.28 && share < 0.39, `an even share, not ${share}`);
  }
  const [gone, ...left] = endpoints;
  for (const [i, key] of keys.entries()) {
    const after = rendezvous(left, key);
    if (before[i] === gone) assert.ok(after !== undefined && left.includes(after));
    else assert.equal(after, before[i]);
  }
  assert.equal(rendezvous([], Buffer.from("x")), undefined);
});

test("keys are shared out by capacity, and a new capacity moves few of them", () => {
  const small = testEndpoint("10.0.0.1:80", 1);
  const share = (capacity: number) =>
    Array.from({ length: 3000 }, (_, i) =>
      rendezvous([small, testEndpoint("10.0.0.2:80", capacity)], Buffer.from(`user-${i}`)),
    ).filter((each) => each === small).length / 3000;
  assert.ok(Math.abs(share(3) - 0.25) < 0.04);
  assert.ok(Math.abs(share(1) - 0.5) < 0.04);
  assert.equal(share(0), 1);
});

test("what another thread evicts is evicted here too; a shorter eviction cuts none short", () => {
  const endpoint = testEndpoint("10.0.0.1:80");
  endpoint.evict({ key: "", ms: 1000, timesEjected: 2, restoreHealth: 0.5 }, 0);
  endpoint.evict({ key: "", ms: 10, timesEjected: 1, restoreHealth: 1 }, 0);
  assert.equal(endpoint.isEvicted(999), true);
  assert.equal(endpoint.isEvicted(1000), false);
  assert.equal(endpoint.health, 0.5);
  fail(endpoint, 2000);
  assert.equal(endpoint.evictedUntil, 5000, "the third in a row");
});
