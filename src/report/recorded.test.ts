import assert from "node:assert/strict";
import { test } from "node:test";
import { agoText } from "./recorded.ts";

test("a time as how long ago it was, never in the future though clocks differ", () => {
  const now = Date.parse("2026-11-28T12:00:00.000Z");
  const ago = (seconds: number): string => agoText(new Date(now - seconds * 1000).toISOString(), now);
  assert.deepEqual([-5, 0, 59, 60, 3599, 3600, 86_399, 200_000].map(ago), [
    "0s",
    "0s",
    "59s",
    "1m",
    "59m",
    "1h",
    "23h",
    "2d",
  ]);
});
