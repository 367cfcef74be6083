import assert from "node:assert/strict";
import { test } from "node:test";
import { digestOf, type SampledRequest } from "./sample.ts";
import { SampleRing } from "./sample-ring.ts";
import { RouteSamples, Sampler } from "./sampler.ts";

const KEY = Buffer.alloc(32, 1);
const SAMPLE: SampledRequest = {
  time: "2026-11-28T10:00:00.000Z",
  weight: 1,
  bind: "8080",
  scheme: "http",
  version: "1.1",
  method: "GET",
  authority: "shop.example",
  target: "/",
  headers: [],
};

test("the first requests of each route are sampled every minute, then few, and their weights add up to all requests", () => {
  const sampler = new Sampler(SampleRing.create(1024 * 1024), KEY);
  const busy = new RouteSamples();
  const rare = new RouteSamples();
  const weights: number[] = [];
  for (let now = 0; now < 59_000; now++) {
    const weight = sampler.weightOf(busy, now);
    if (weight > 0) weights.push(weight);
  }
  assert.deepEqual(weights.slice(0, 16), Array(16).fill(1));
  assert.ok(weights.length > 100, "some for each second");
  assert.ok(weights.length < 250, "but not so many that the ring covers a short time only");
  assert.equal(weights.reduce((sum, weight) => sum + weight, 0) + busy.pending, 59_000);
  // What one route has had does not count for another.
  assert.equal(sampler.weightOf(rare, 59_000.5), 1);
  const next = Array.from({ length: 20 }, (_, i) => sampler.weightOf(busy, 61_000 + i));
  assert.ok(next.slice(0, 16).every((weight) => weight > 0));
});

test("many routes get a hundred samples a second together", () => {
  const sampler = new Sampler(SampleRing.create(1024 * 1024), KEY);
  const routes = Array.from({ length: 1000 }, () => new RouteSamples());
  const sampled = routes.filter((route) => sampler.weightOf(route, 10) > 0);
  assert.equal(sampled.length, 100);
  const later = routes.slice(200).filter((route) => sampler.weightOf(route, 1011) > 0);
  assert.equal(later.length, 100);
});

test("the next sample stands for one that is too large, too", () => {
  const ring = SampleRing.create(64 * 1024);
  const sampler = new Sampler(ring, KEY);
  const route = new RouteSamples();
  const weight = sampler.weightOf(route, 0);
  sampler.write(route, { ...SAMPLE, weight, target: `/${"x".repeat(3000)}` });
  assert.equal(ring.entries().length, 0);
  assert.equal(sampler.weightOf(route, 1), 2);
});

test("a digest depends on key, name and value", () => {
  const digests = [
    digestOf(KEY, "cookie", "a=b"),
    digestOf(Buffer.alloc(32, 2), "cookie", "a=b"),
    digestOf(KEY, "x-cookie", "a=b"),
    digestOf(KEY, "cookie", "a=c"),
  ];
  assert.equal(new Set(digests).size, 4);
  assert.equal(digestOf(KEY, "cookie", "a=b"), digests[0]);
});
