/** Where the algorithms differ; what they have in common is in contract.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { testEndpoint } from "../endpoints/testing/endpoint.ts";
import { type Algorithm, BucketBalancer, SingleEndpoint } from "./balancer.ts";
import { leastRequests } from "./least-requests.ts";
import { powerOfTwoChoices } from "./power-of-two-choices.ts";
import { AffinityKey, rendezvous } from "./rendezvous.ts";
import { roundRobin } from "./round-robin.ts";

/** Returns the numbers in order, over and over. */
function cycle(...numbers: number[]): () => number {
  let at = 0;
  return () => numbers[at++ % numbers.length] as number;
}

function choose(endpoints: readonly Endpoint[], algorithm: Algorithm): string | undefined {
  return new BucketBalancer([[endpoints]], algorithm, { now: () => 1 }).choose()?.key;
}

function succeed(endpoint: Endpoint, seconds: number): void {
  endpoint.begin();
  endpoint.end(true, seconds);
}

function evict(endpoint: Endpoint): void {
  endpoint.evict({ key: endpoint.key, ms: 1000, timesEjected: 1, restoreHealth: undefined }, 1);
}

test("power of two choices: the endpoint with the better score of two draws", () => {
  const [slow, quick] = [testEndpoint("slow"), testEndpoint("quick")];
  succeed(slow, 2);
  succeed(quick, 0.1);
  assert.equal(choose([slow, quick], powerOfTwoChoices(cycle(0, 0.9))), "quick");
  assert.equal(choose([slow, quick], powerOfTwoChoices(cycle(0.9, 0))), "quick");
  assert.equal(choose([slow, quick], powerOfTwoChoices(cycle(0))), "slow", "drawn twice");
});

test("power of two choices: draws are weighted by capacity", () => {
  const [big, small] = [testEndpoint("big", 3), testEndpoint("small", 1)];
  assert.equal(choose([big, small], powerOfTwoChoices(cycle(0.74))), "big");
  assert.equal(choose([big, small], powerOfTwoChoices(cycle(0.76))), "small");
});

test("power of two choices: two active endpoints are compared, also when one of the first two draws is evicted", () => {
  const [slow, evicted, quick] = [testEndpoint("slow"), testEndpoint("evicted"), testEndpoint("quick")];
  succeed(slow, 2);
  succeed(quick, 0.1);
  evict(evicted);
  // Slow and evicted, then slow and quick of the two active ones.
  assert.equal(choose([slow, evicted, quick], powerOfTwoChoices(cycle(0, 0.5, 0, 0.9))), "quick");
});

test("least requests: the endpoint of two draws with fewer calls in flight for its capacity", () => {
  const [idle, busy] = [testEndpoint("idle"), testEndpoint("busy", 3)];
  succeed(idle, 60);
  busy.begin();
  assert.equal(choose([busy, idle], leastRequests(cycle(0, 0.9))), "idle");
  for (const endpoint of [idle, busy]) endpoint.begin();
  assert.equal(choose([idle, busy], leastRequests(cycle(0, 0.9))), "busy", "two calls of three beside one of one");
  assert.equal(choose([busy, idle], leastRequests(cycle(0, 0.9))), "busy", "in either order");
});

test("round robin: takes turns, spread evenly where capacities differ", () => {
  const turns = (...capacities: number[]): string => {
    const endpoints = capacities.map((capacity, i) => testEndpoint("abc"[i] ?? "", capacity));
    const balancer = new BucketBalancer(
      [[endpoints]],
      roundRobin(() => 0),
    );
    return Array.from({ length: 7 }, () => balancer.choose()?.key).join("");
  };
  assert.equal(turns(1, 1, 1), "abcabca");
  assert.equal(turns(5, 1, 1), "aabacaa");
});

test("round robin: the others share the turns of an evicted endpoint", () => {
  const endpoints = ["a", "b", "c"].map((key) => testEndpoint(key));
  const balancer = new BucketBalancer(
    [[endpoints]],
    roundRobin(() => 0),
    { now: () => 1 },
  );
  evict(endpoints[1] as Endpoint);
  const turns = Array.from({ length: 60 }, () => balancer.choose()?.key);
  assert.equal(turns.filter((key) => key === "a").length, 30);
  assert.equal(turns.filter((key) => key === "c").length, 30);
});

test("rendezvous: a key stays with its endpoint; if an endpoint is removed, only its keys move", () => {
  const endpoints = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"].map((key) => testEndpoint(key));
  const keys = Array.from({ length: 3000 }, (_, i) => Buffer.from(`user-${i}`));
  const balancer = (among: readonly Endpoint[]) => new BucketBalancer([[among]], rendezvous(roundRobin(() => 0)));
  const before = keys.map((key) => balancer(endpoints).choose(key));
  const [gone, ...left] = endpoints;
  const after = balancer(left);
  for (const [i, key] of keys.entries())
    if (before[i] !== gone) assert.equal(after.choose(key), before[i], "keys of others stay");
});

test("rendezvous: keys are distributed by capacity, and a changed capacity moves few of them", () => {
  const small = testEndpoint("10.0.0.1:80", 1);
  const share = (capacity: number): number => {
    const endpoints = [small, testEndpoint("10.0.0.2:80", capacity)];
    const balancer = new BucketBalancer([[endpoints]], rendezvous(roundRobin(() => 0)));
    const chosen = Array.from({ length: 3000 }, (_, i) => balancer.choose(Buffer.from(`user-${i}`)));
    return chosen.filter((each) => each === small).length / 3000;
  };
  assert.ok(Math.abs(share(3) - 0.25) < 0.04);
  assert.ok(Math.abs(share(1) - 0.5) < 0.04);
});

test("an affinity key is text or bytes; what fails or is empty gives none", () => {
  const read = (source: string): string | undefined => {
    const request = { method: "GET", scheme: "http", authority: "a", path: "/", search: "", version: "HTTP/1.1" };
    const key = new AffinityKey({ source }, STANDARD_ENVIRONMENT).read({
      request: { ...request, headers: ["x-user", "ann"] },
    });
    return key && Buffer.from(key).toString();
  };
  assert.equal(read('request.headers["x-user"]'), "ann");
  assert.equal(read("bytes(request.path)"), "/");
  assert.equal(read('request.headers["x-missing"]'), undefined);
  assert.equal(read('""'), undefined);
  assert.equal(read("1"), undefined);
});

test("a single endpoint is used even if it is evicted, but no session stays with it", () => {
  const endpoint = testEndpoint("a");
  const balancer = new SingleEndpoint(endpoint);
  const { name } = endpoint.pool;
  assert.equal(balancer.find(name), endpoint);
  assert.equal(balancer.find("b:80"), undefined);
  endpoint.evict({ key: endpoint.key, ms: 1e9, timesEjected: 1, restoreHealth: undefined }, performance.now());
  assert.equal(balancer.choose(), endpoint);
  assert.equal(balancer.find(name), undefined);
});
