/** What every balancer promises, whatever its algorithm. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { testEndpoint } from "../endpoints/testing/endpoint.ts";
import { type Algorithm, type Balancer, BucketBalancer } from "./balancer.ts";
import { ALGORITHMS } from "./registry.ts";
import { rendezvous } from "./rendezvous.ts";

/** The same numbers at every run, uniform in [0, 1). */
function seeded(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}

const IMPLEMENTATIONS: Readonly<Record<string, (random: () => number) => Algorithm>> = {
  ...ALGORITHMS,
  rendezvous: (random) => rendezvous(ALGORITHMS.PowerOfTwoChoices(random)),
};

const CALLS = 4000;

/** How often each endpoint is chosen; every call has another key, as with affinity. */
function shares(balancer: Balancer): Map<string, number> {
  const counts = new Map<string, number>();
  for (let i = 0; i < CALLS; i++) {
    const key = balancer.choose(Buffer.from(`user-${i}`))?.key ?? "none";
    counts.set(key, (counts.get(key) ?? 0) + 1 / CALLS);
  }
  return counts;
}

function chosen(balancer: Balancer): string[] {
  return [...shares(balancer).keys()].sort();
}

function evict(endpoint: Endpoint, now: number, ms = 1000): void {
  endpoint.evict({ key: endpoint.key, ms, timesEjected: 1, restoreHealth: undefined }, now);
}

for (const [name, create] of Object.entries(IMPLEMENTATIONS)) {
  const balancerOf = (buckets: readonly (readonly Endpoint[])[], now: () => number = () => 1): Balancer =>
    new BucketBalancer([buckets], create(seeded()), { random: seeded(7), now });
  const [a, b, c] = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"] as const;

  test(`${name}: without an endpoint that has capacity there is nothing to choose`, () => {
    assert.equal(balancerOf([]).choose(), undefined);
    assert.equal(balancerOf([[], [testEndpoint(a, 0)]]).choose(), undefined);
  });

  test(`${name}: equal endpoints get equal shares, with and without a key`, () => {
    const endpoints = [a, b, c].map((key) => testEndpoint(key));
    for (const share of shares(balancerOf([endpoints])).values()) assert.ok(Math.abs(share - 1 / 3) < 0.05, `${share}`);
    const balancer = balancerOf([endpoints]);
    const keyless = new Set(Array.from({ length: 100 }, () => balancer.choose()?.key));
    assert.deepEqual(keyless, new Set([a, b, c]));
  });

  test(`${name}: more capacity means more calls; capacity 0 means none`, () => {
    const counts = shares(balancerOf([[testEndpoint(a, 3), testEndpoint(b, 1), testEndpoint(c, 0)]]));
    assert.deepEqual([...counts.keys()].sort(), [a, b]);
    assert.ok((counts.get(a) ?? 0) > 0.65, `${counts.get(a)}`);
  });

  test(`${name}: an evicted endpoint is not chosen until its time is over`, () => {
    let now = 1000;
    const [first, second] = [testEndpoint(a), testEndpoint(b)];
    const balancer = balancerOf([[first, second]], () => now);
    evict(first, now);
    assert.deepEqual(chosen(balancer), [b]);
    now = 1999;
    assert.deepEqual(chosen(balancer), [b]);
    now = 2000;
    assert.deepEqual(chosen(balancer), [a, b]);
  });

  test(`${name}: an endpoint that is full is chosen only if all active ones are`, () => {
    const [full, free, far, evicted] = [
      testEndpoint(a, 1, 1),
      testEndpoint(b, 1, 1),
      testEndpoint(c),
      testEndpoint("d"),
    ];
    full.begin();
    evict(evicted, 0);
    assert.deepEqual(chosen(balancerOf([[full, free], [far]], () => 1)), [b]);
    free.begin();
    assert.deepEqual(chosen(balancerOf([[full, free], [far]], () => 1)), [c]);
    assert.deepEqual(chosen(balancerOf([[full, evicted]], () => 1)), [a]);
  });

  test(`${name}: the first bucket with an active endpoint is used`, () => {
    let now = 1;
    const [drained, near, far] = [testEndpoint(a, 0), testEndpoint(b), testEndpoint(c)];
    const balancer = balancerOf([[drained], [near], [far]], () => now);
    assert.deepEqual(chosen(balancer), [b]);
    evict(near, now);
    assert.deepEqual(chosen(balancer), [c]);
    now = 2000;
    assert.deepEqual(chosen(balancer), [b]);
  });

  test(`${name}: when all endpoints are evicted, those of the first bucket are used`, () => {
    const [near, alsoNear, far] = [testEndpoint(a), testEndpoint(b), testEndpoint(c)];
    for (const endpoint of [near, alsoNear, far]) evict(endpoint, 1);
    assert.deepEqual(chosen(balancerOf([[near, alsoNear], [far]])), [a, b]);
  });

  test(`${name}: finds an endpoint by its name, in any bucket, while it takes calls`, () => {
    let now = 1;
    const [near, far, drained] = [testEndpoint(a), testEndpoint(b, 1, 1), testEndpoint(c, 0)];
    const balancer = balancerOf([[near, drained], [far]], () => now);
    const found = () => [near, far, drained].map(({ pool }) => balancer.find(pool.name));
    assert.deepEqual(found(), [near, far, undefined]);
    evict(near, now);
    far.begin();
    assert.deepEqual(found(), [undefined, undefined, undefined]);
    now = 2000;
    assert.equal(balancer.find(near.pool.name), near);
  });

  test(`${name}: endpoints that have failed for a request are chosen only if there are no others`, () => {
    const [near, alsoNear, far] = [testEndpoint(a), testEndpoint(b), testEndpoint(c)];
    const balancer = balancerOf([[near, alsoNear], [far]]);
    const chosenWithout = (...failed: Endpoint[]): Set<Endpoint | undefined> => {
      const without = new Set(failed);
      const keys = Array.from({ length: 50 }, (_, i) => Buffer.from(`user-${i}`));
      return new Set(keys.flatMap((key) => [balancer.choose(key, without), balancer.choose(undefined, without)]));
    };
    assert.deepEqual(chosenWithout(near), new Set([alsoNear]));
    assert.deepEqual(chosenWithout(near, alsoNear), new Set([far]));
    assert.deepEqual(chosenWithout(near, alsoNear, far), new Set([near, alsoNear]));
    evict(far, 1);
    assert.deepEqual(chosenWithout(near, alsoNear), new Set([far]), "one that is evicted may work");
  });

  test(`${name}: knows whether another endpoint takes calls`, () => {
    const [near, far] = [testEndpoint(a), testEndpoint(b)];
    const balancer = balancerOf([[near], [far]]);
    assert.equal(balancer.hasOther(near), true);
    assert.equal(balancer.hasOther(near, new Set([far])), false);
    evict(far, 1);
    assert.equal(balancer.hasOther(near), false);
  });

  test(`${name}: knows all endpoints that have capacity`, () => {
    const [near, far] = [testEndpoint(a), testEndpoint(b)];
    assert.deepEqual(balancerOf([[near, testEndpoint(c, 0)], [far]]).endpoints, [near, far]);
  });
}
