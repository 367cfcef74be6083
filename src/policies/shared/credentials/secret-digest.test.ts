import assert from "node:assert/strict";
import { test } from "node:test";
import { sameSecret, secretDigest } from "./secret-digest.ts";

test("digests differ if the parts do, also in characters beyond latin1", () => {
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
