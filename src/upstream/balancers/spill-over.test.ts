/** How calls are distributed when a part of the near endpoints is gone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { testEndpoint } from "../endpoints/testing/endpoint.ts";
import { BucketBalancer, type Tiers } from "./balancer.ts";
import { leastRequests } from "./least-requests.ts";
import { rendezvous } from "./rendezvous.ts";

/** Endpoints `<name>0`, `<name>1` and so on. */
function some(name: string, count: number, capacity = 1): Endpoint[] {
  return Array.from({ length: count }, (_, i) => testEndpoint(`${name}${i}`, capacity));
}

function evict(endpoints: readonly Endpoint[], count: number): void {
  for (const endpoint of endpoints.slice(0, count))
    endpoint.evict({ key: endpoint.key, ms: 1000, timesEjected: 1, restoreHealth: undefined }, 0);
}

const CALLS = 1000;

function balancerOf(tiers: Tiers<Endpoint>): BucketBalancer {
  let draws = 0;
  // Evenly spread over [0, 1), so shares are exact.
  const random = (): number => ((draws++ % CALLS) + 0.5) / CALLS;
  return new BucketBalancer(tiers, rendezvous(leastRequests(() => 0)), { random, now: () => 1 });
}

/** Percent of calls to the endpoints of each name. */
function shares(tiers: Tiers<Endpoint>): Record<string, number> {
  const balancer = balancerOf(tiers);
  const counts: Record<string, number> = {};
  for (let i = 0; i < CALLS; i++) {
    const name = balancer.choose()?.key.replace(/\d+$/, "") ?? "none";
    counts[name] = (counts[name] ?? 0) + 100 / CALLS;
  }
  return Object.fromEntries(Object.entries(counts).map(([name, share]) => [name, Math.round(share)]));
}

test("near endpoints keep all calls until more than two of seven are gone; then they keep 1.4 times what is left", () => {
  const [near, far] = [some("near", 10), some("far", 3)];
  for (const [gone, kept] of [
    [2, 100],
    [3, 98],
    [5, 70],
    [9, 14],
  ] as const) {
    evict(near, gone);
    const expected = { near: kept, ...(kept < 100 && { far: 100 - kept }) };
    assert.deepEqual(shares([[near, far]]), expected, `${gone} of ten gone`);
  }
  evict(near, 10);
  assert.deepEqual(shares([[near, far]]), { far: 100 });
});

test("what is left is a part of the capacity", () => {
  const [near, far] = [[...some("small", 3, 1), ...some("near", 1, 7)], some("far", 1)];
  evict(near, 3);
  assert.deepEqual(shares([[near, far]]), { near: 98, far: 2 });
});

test("what the next bucket cannot take goes on; if all together cannot take it, each gets its part", () => {
  const [near, next, far] = [some("near", 10), some("next", 10), some("far", 10)];
  evict(near, 5);
  evict(next, 9);
  assert.deepEqual(shares([[near, next, far]]), { near: 70, next: 14, far: 16 });
  evict(far, 9);
  assert.deepEqual(shares([[near, next, far]]), { near: 71, next: 14, far: 14 });
  for (const each of [near, next, far]) evict(each, 10);
  assert.deepEqual(shares([[near, next, far]]), { near: 100 }, "a call that will probably fail is better than none");
});

test("backups get calls only while no other endpoint takes any, and spill over among themselves", () => {
  const [main, backup, farBackup] = [some("main", 10), some("backup", 2), some("far", 1)];
  const tiers = [[main], [backup, farBackup]];
  evict(main, 9);
  evict(backup, 1);
  assert.deepEqual(shares(tiers), { main: 100 });
  evict(main, 10);
  assert.deepEqual(shares(tiers), { backup: 70, far: 30 });
});

test("full endpoints are not ill: their calls go to those of their bucket, then to the nearest with room", () => {
  const near = [...some("near", 1), testEndpoint("full", 1, 1)];
  const far = [testEndpoint("far", 1, 1)];
  near[1]?.begin();
  assert.deepEqual(shares([[near, far]]), { near: 100 });
  evict(near, 1);
  far[0]?.begin();
  const rest = some("rest", 1);
  assert.deepEqual(shares([[near, far, rest]]), { rest: 100 });
});

test("a key stays in its bucket, and only those of the lost part move", () => {
  const [near, far] = [some("10.0.0.", 10), some("10.0.9.", 10)];
  const balancer = balancerOf([[near, far]]);
  const keys = Array.from({ length: 2000 }, (_, i) => Buffer.from(`user-${i}`));
  const chosen = (): (Endpoint | undefined)[] => keys.map((key) => balancer.choose(key));
  evict(near, 5);
  const before = chosen();
  const again = keys.toReversed().map((key) => balancer.choose(key));
  assert.deepEqual(again.toReversed(), before);
  const moved = before.filter((each) => each !== undefined && far.includes(each)).length;
  assert.ok(Math.abs(moved / keys.length - 0.3) < 0.04, `${moved}`);
  evict(near, 6);
  for (const [i, each] of chosen().entries()) if (far.includes(before[i] as Endpoint)) assert.equal(each, before[i]);
});

test("a request that has failed at the last near endpoint goes on", () => {
  const [near, far] = [some("near", 2), some("far", 1)];
  evict(near, 1);
  assert.equal(balancerOf([[near, far]]).choose(undefined, new Set(near.slice(1))), far[0]);
});

test("an explanation says why endpoints that come first were not chosen", () => {
  const [near, far, backup] = [some("near", 10), some("far", 1), some("backup", 1)];
  const balancer = balancerOf([[near, far], [backup]]);
  const why = (endpoint: Endpoint | undefined) => endpoint && balancer.whyBeyond(endpoint);
  assert.deepEqual([why(near[0]), why(far[0])], [undefined, undefined]);
  evict(near, 2);
  assert.equal(why(near[9]), undefined);
  assert.equal(why(far[0]), "2 of the 10 endpoints that come first take no requests");
  evict(near, 9);
  const text = "9 of the 10 endpoints that come first take no requests, so 86 % of the requests go beyond them";
  assert.deepEqual([why(near[9]), why(far[0])], [text, text]);
  evict(far, 1);
  assert.equal(why(near[9]), undefined, "all endpoints together are short");
  far[0]?.isEvicted(2000);
  evict(near, 10);
  assert.equal(why(far[0]), "no endpoint that comes first takes requests");
  evict(far, 1);
  assert.equal(why(backup[0]), "no endpoint that comes first takes requests");
});
