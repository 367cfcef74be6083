import assert from "node:assert/strict";
import { test } from "node:test";
import { BoundedCache } from "./bounded-cache.ts";

test("a full cache keeps the values that are read", () => {
  const cache = new BoundedCache<number>(10);
  cache.set("asked for", -1);
  for (let i = 0; i < 100; i++) {
    cache.set(`${i}`, i);
    assert.equal(cache.get("asked for"), -1);
  }
  const kept = Array.from({ length: 100 }, (_, i) => cache.get(`${i}`)).filter((value) => value !== undefined);
  assert.ok(kept.includes(99) && kept.length <= 9);
  cache.delete("asked for");
  assert.equal(cache.get("asked for"), undefined);
});

test("a full cache evicts what was set first", () => {
  const cache = new BoundedCache<number>(2);
  for (const [key, value] of [
    ["a", 1],
    ["b", 2],
    ["a", 3],
    ["c", 4],
  ] as const)
    cache.set(key, value);
  assert.deepEqual([cache.get("a"), cache.get("b"), cache.get("c")], [3, undefined, 4]);
});

test("a cache of one entry holds one", () => {
  const cache = new BoundedCache<number>(1);
  cache.set("a", 1);
  cache.set("b", 2);
  assert.deepEqual([cache.get("a"), cache.get("b")], [undefined, 2]);
});

test("objects are keys by their identity", () => {
  const [one, other] = [{}, {}];
  const cache = new BoundedCache<number, object>(4);
  cache.set(one, 1);
  assert.deepEqual([cache.get(one), cache.get(other)], [1, undefined]);
});
