import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { contextOf } from "../testing/context.ts";
import { DecisionCache } from "./cache.ts";

test("keys are short, whatever clients send, and differ for different values", () => {
  const cache = new DecisionCache<string>(
    { key: ["request.path", "request.method"], ttl: "1m", maxEntries: 2 },
    "request",
    STANDARD_ENVIRONMENT,
  );
  const keyOf = (path: string, method: string): string => cache.keyOf(contextOf({ path, method }).variables) ?? "";
  const keys = [keyOf(`/${"a".repeat(60_000)}`, "GET"), keyOf("/a", "GET"), keyOf("/aG", "ET"), keyOf("/a", "PUT")];
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(keyOf("/a", "GET"), keys[1]);
  for (const key of keys) assert.ok(key.length <= 64);
});
