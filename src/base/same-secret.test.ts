import assert from "node:assert/strict";
import { test } from "node:test";
import { sameSecret } from "./same-secret.ts";

test("only the whole secret is the secret", () => {
  assert.ok(sameSecret("abc", "abc"));
  for (const text of ["", "ab", "abd", "abcd", "äb"]) assert.ok(!sameSecret(text, "abc"), text);
});
