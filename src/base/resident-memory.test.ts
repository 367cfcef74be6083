import assert from "node:assert/strict";
import { test } from "node:test";
import { residentMemory } from "./resident-memory.ts";

test("resident memory is what Node.js reports", () => {
  const { all, ofFiles } = residentMemory();
  const rss = process.memoryUsage.rss();
  assert.ok(all > 0.8 * rss && all < 1.25 * rss, `${all} of ${rss} bytes`);
  assert.ok(ofFiles >= 0 && ofFiles < all);
});
