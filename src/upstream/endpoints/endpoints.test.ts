import assert from "node:assert/strict";
import { test } from "node:test";
import { Sweeper } from "../../base/sweeper.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { serviceBalancer } from "../balancers/registry.ts";
import { SharedLoads } from "../loads/shared-loads.ts";
import { Pools } from "../pools/pools.ts";
import { Resolver } from "../resolve/resolver.ts";
import type { Endpoint, EvictionNotice } from "./endpoint.ts";
import { BackendCalls, byOwner, combineStats, combineThreads, type EndpointStats, Endpoints } from "./endpoints.ts";

const TARGET = { host: "10.0.0.1", port: 80 };

function newEndpoints(onEvicted?: (notice: EvictionNotice) => void, loads?: SharedLoads) {
  const sweeper = new Sweeper();
  const settings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
  const pools = new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, sweeper);
  return {
    endpoints: new Endpoints(pools, onEvicted, undefined, loads),
    sweeper,
    [Symbol.dispose]: () => sweeper.close(),
  };
}

test("an endpoint lives as long as a configuration uses it, and keeps what it has learned over a reload", () => {
  using made = newEndpoints();
  const { endpoints, sweeper } = made;
  const before = endpoints.acquire(TARGET, 1);
  before.begin();
  before.end(false, 0);
  const after = endpoints.acquire({ ...TARGET }, 1);
  assert.equal(after, before);
  endpoints.release([before]);
  assert.equal(endpoints.stats()[0]?.health, 0.7);
  endpoints.release([after]);
  assert.deepEqual(endpoints.stats(), []);
  assert.equal(sweeper.size, 0, "its pool has gone too");
  assert.equal(endpoints.acquire(TARGET, 1).health, 1);
});

test("endpoints that differ in capacity or owner share a pool; those that connect in another way do not", () => {
  using made = newEndpoints();
  const { endpoints } = made;
  const one = endpoints.acquire(TARGET, 1, "one");
  assert.notEqual(endpoints.acquire(TARGET, 1, "two"), one);
  assert.equal(endpoints.acquire(TARGET, 2, "one").pool, one.pool);
  assert.notEqual(endpoints.acquire({ ...TARGET, version: "HTTP/2.0" }, 1, "one").pool, one.pool);
});

test("evictions by another thread apply to existing endpoints and to those added later", () => {
  const passedOn: string[] = [];
  using made = newEndpoints(({ key }) => passedOn.push(key));
  const { endpoints } = made;
  const known = endpoints.acquire(TARGET, 1);
  endpoints.evict({ key: known.key, ms: 60_000, timesEjected: 1, restoreHealth: undefined });
  assert.equal(known.isEvicted(performance.now()), true);
  endpoints.release([known]);
  endpoints.evict({ key: known.key, ms: 60_000, timesEjected: 1, restoreHealth: undefined });
  const later = endpoints.acquire(TARGET, 1);
  assert.notEqual(later, known);
  assert.equal(later.isEvicted(performance.now()), true);
  assert.deepEqual(passedOn, [], "the other thread has notified all others");
  later.begin();
  later.isEvicted(performance.now() + 60_001);
  later.fail({}, 1000, performance.now());
  assert.deepEqual(passedOn, [later.key]);
});

function stats(more: Partial<EndpointStats>): EndpointStats {
  const pool = { active: 1, idle: 1, connecting: 0, waiting: 0, overflows: 0 };
  const counts = {
    pending: 1,
    total: 1,
    consecutiveFailures: 0,
    timesEjected: 0,
    evictedMs: null,
    overflows: 0,
    check: null,
  };
  const base = { key: "k", target: "10.0.0.1:80", health: 1, latency: 0, countsAlone: false };
  return { ...base, ...counts, pool, limits: LIMITS, ...more };
}

const LIMITS = { connections: 10, waiting: 5, requests: 8, shared: { waiting: false, requests: true } };

test("statistics of several threads: counts add up, health and latency are weighted by calls, an eviction by any counts", () => {
  const a = stats({ total: 3, health: 1, latency: 0.1 });
  const b = stats({ total: 1, health: 0.2, latency: 0.5, evictedMs: 500, consecutiveFailures: 4 });
  const both = combineStats(a, b);
  assert.deepEqual([both.total, both.pending, both.pool.active, both.consecutiveFailures], [4, 2, 2, 4]);
  assert.equal(Math.round(both.health * 1000), 800);
  assert.equal(Math.round(both.latency * 1000), 200);
  assert.equal(both.evictedMs, 500);
  assert.equal(combineStats(b, a).evictedMs, 500);
  assert.deepEqual(both.limits, { ...LIMITS, connections: 20, waiting: 10, requests: 16 });
  assert.deepEqual(
    combineThreads(a, b),
    { ...both, limits: { ...both.limits, requests: 8 } },
    "a limit of all threads",
  );
  const waiting = { ...LIMITS, shared: { waiting: true, requests: false } };
  const { limits, countsAlone } = combineThreads(
    { ...a, limits: waiting },
    { ...b, limits: waiting, countsAlone: true },
  );
  assert.deepEqual([limits.waiting, limits.requests, countsAlone], [5, 16, true]);
  const unlimited = { ...LIMITS, requests: null };
  assert.equal(combineStats(a, { ...b, limits: unlimited }).limits.requests, null);
  assert.equal(combineStats(stats({ total: 0 }), stats({ total: 0 })).health, 1);
});

test("threads share the calls of endpoints that are balanced by load or limited, until no configuration has them", () => {
  const memory = SharedLoads.memoryFor(2, 3);
  using mine = newEndpoints(undefined, new SharedLoads(memory, 0));
  using theirs = newEndpoints(undefined, new SharedLoads(memory, 1));
  const both = [mine.endpoints, theirs.endpoints];
  const [one, same] = both.map((each) => each.acquire(TARGET, 1, "alone")) as [Endpoint, Endpoint];
  mine.endpoints.shareLoads([one]);
  one.begin();
  assert.equal(one.sharesLoad, false, "nothing is chosen by the load of a single endpoint");
  theirs.endpoints.shareLoads([same, theirs.endpoints.acquire(TARGET, 1, "other")]);
  mine.endpoints.shareLoads([one, mine.endpoints.acquire(TARGET, 1, "other")]);
  assert.deepEqual([one.load, same.load], [1, 1], "also calls that began before");
  one.abandon();
  assert.deepEqual([one.load, same.load, one.total], [0, 0, 1]);

  const limited = { ...TARGET, limits: { maxRequests: 2 } };
  const [first, second] = both.map((each) => each.acquire(limited, 1)) as [Endpoint, Endpoint];
  assert.deepEqual([first.begin(), second.begin()], [true, true]);
  assert.deepEqual([first.isFull, second.isFull, second.pending], [true, true, 1]);
  assert.equal(first.begin(), false);
  first.takeBack();
  assert.deepEqual([first.total, first.load], [1, 2]);
  first.end(true, 0.1);
  assert.equal(second.isFull, false);
  second.fail({}, 1000, performance.now());
  assert.equal(first.load, 0);
  first.begin();
  mine.endpoints.release([first]);
  assert.equal(second.load, 0);
  first.end(true, 0.1);
  assert.equal(second.load, 0, "its last call ends after it");
  theirs.endpoints.release([second]);
  mine.endpoints.shareLoads([first, second]);
  // Of three rows, two are in use.
  assert.deepEqual(
    ["a", "b"].map((key) => new SharedLoads(memory, 0).claim(key) === undefined),
    [false, true],
  );
});

test("limits of connections are divided among the threads, and those of waiting requests and retries are shared", () => {
  const memory = SharedLoads.memoryFor(2, 3);
  using mine = newEndpoints(undefined, new SharedLoads(memory, 0));
  using theirs = newEndpoints(undefined, new SharedLoads(memory, 1));
  const limits = { maxConnections: 3, maxPendingRequests: 7 };
  const both = [mine.endpoints, theirs.endpoints] as const;
  const held = both.map((each) => each.acquire({ ...TARGET, limits }, 1));
  assert.deepEqual(
    both.map((each) => each.stats()[0]?.limits.connections),
    [2, 1],
  );
  const [first, second] = both.map((each) => each.stats()[0]) as [EndpointStats, EndpointStats];
  assert.deepEqual(combineThreads(first, second).limits, {
    connections: 3,
    waiting: 7,
    requests: null,
    shared: { waiting: true, requests: false },
  });

  const calls = both.map(() => new BackendCalls());
  for (const [i, each] of both.entries()) each.shareRetries(calls[i] as BackendCalls, "/shop");
  const [ours, others] = calls.map(({ retrying }) => retrying);
  assert.equal(ours?.begin(1), true);
  assert.equal(others?.begin(1), false);
  mine.endpoints.calls = new Map([["/shop", calls[0] as BackendCalls]]);
  mine.endpoints.drop({ endpoints: [], calls: mine.endpoints.calls });
  assert.equal(others?.begin(1), false, "the configuration in effect has the backend too");
  const former = mine.endpoints.calls;
  mine.endpoints.calls = new Map();
  mine.endpoints.drop({ endpoints: held.slice(0, 1), calls: former });
  assert.equal(others?.begin(1), true);
  ours?.end();
  assert.equal(others?.begin(1), false, "a retry that began before ends without being counted twice");
  theirs.endpoints.drop({ endpoints: held.slice(1), calls: new Map([["/shop", calls[1] as BackendCalls]]) });
  const free = ["a", "b", "c"].map((key) => new SharedLoads(memory, 0).claim(key) !== undefined);
  assert.deepEqual(free, [true, true, true], "all rows");
});

test("endpoints for which the table has no room count alone, and say so; the log says it once", () => {
  let warnings = 0;
  const memory = SharedLoads.memoryFor(2, 1);
  const threads = [0, 1].map((index) => newEndpoints(undefined, new SharedLoads(memory, index, () => warnings++)));
  const limits = { maxRequests: 1, maxPendingRequests: 1 };
  for (const { endpoints } of threads) {
    endpoints.acquire({ ...TARGET, limits: { maxRequests: 1 } }, 1);
    endpoints.acquire({ ...TARGET, limits: { maxPendingRequests: 1 } }, 1);
    endpoints.acquire({ ...TARGET, limits }, 1);
    assert.deepEqual(
      endpoints.stats().map(({ countsAlone }) => countsAlone),
      [false, true, true],
    );
  }
  assert.equal(warnings, 1);
  for (const each of threads) each[Symbol.dispose]();
});

test("a choice by load counts the calls of other threads", () => {
  const memory = SharedLoads.memoryFor(2);
  using mine = newEndpoints(undefined, new SharedLoads(memory, 0));
  using theirs = newEndpoints(undefined, new SharedLoads(memory, 1));
  const [pair, same] = [mine, theirs].map(({ endpoints }) => {
    const both = ["a", "b"].map((owner) => endpoints.acquire(TARGET, 1, owner));
    endpoints.shareLoads(both);
    return both;
  }) as [Endpoint[], Endpoint[]];
  for (const endpoint of pair) {
    endpoint.begin();
    endpoint.end(true, 1);
  }
  same[0]?.begin();
  for (const algorithm of ["LeastRequests", "PowerOfTwoChoices"] as const) {
    const draws = [0, 0.9];
    const balancer = serviceBalancer([[pair]], { algorithm }, false, () => draws.shift() ?? 0);
    assert.equal(balancer.choose(), pair[1], algorithm);
  }
});

test("endpoints are found by the uid of their workload, whatever characters it has", () => {
  using made = newEndpoints();
  const { endpoints } = made;
  for (const owner of ["a", "a b", "a%20b"]) endpoints.acquire(TARGET, 1, owner);
  assert.equal(endpoints.stats().length, 3);
  const find = byOwner(endpoints.stats());
  for (const owner of ["a", "a b", "a%20b"]) assert.equal(find(owner).length, 1, owner);
  assert.deepEqual(find("b"), []);
});
