import assert from "node:assert/strict";
import { test } from "node:test";
import { BoundedCache, sameSecret, secretDigest } from "./verified.ts";

test("digests differ wherever the parts do, also in characters beyond latin1", () => {
  assert.deepEqual(secretDigest("ab", "c"), secretDigest("ab", "c"));
  for (const [a, b] of [
    [
      ["ab", "c"],
      ["a", "bc"],
    ],
    [["a"], ["a", ""]],
    // The same low bytes.
    [["\u0141"], ["A"]],
    [["密码"], ["\u5bc6\u7801x"]],
  ] as const)
    assert.notDeepEqual(secretDigest(...a), secretDigest(...b));
  assert.ok(sameSecret("密", "密") && !sameSecret("\u0141", "A"));
});

test("a full cache forgets what was set first", () => {
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
