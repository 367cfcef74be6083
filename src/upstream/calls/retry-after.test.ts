import assert from "node:assert/strict";
import { test } from "node:test";
import { retryAfter } from "./retry-after.ts";

const NOW = Date.UTC(2026, 0, 1);

const CASES: readonly (readonly [string, readonly string[], number | undefined])[] = [
  ["seconds", ["retry-after", "7"], 7000],
  ["a date", ["retry-after", new Date(NOW + 30_000).toUTCString()], 30_000],
  ["a date that has passed", ["retry-after", new Date(NOW - 30_000).toUTCString()], undefined],
  ["milliseconds", ["retry-after-ms", "250"], 250],
  ["seconds until a reset", ["x-ratelimit-reset", "12"], 12_000],
  ["a reset as seconds since 1970", ["x-ratelimit-reset", String(NOW / 1000 + 5)], 5000],
  ["the smallest of several limits", ["x-ratelimit-reset-requests", "6m0s", "x-ratelimit-reset-tokens", "1.5"], 1500],
  ["the plain header before others", ["x-ratelimit-reset", "1", "retry-after", "2"], 2000],
  ["nonsense", ["retry-after", "soon", "x-ratelimit-reset-tokens", "-1"], undefined],
  ["zero, which says nothing", ["retry-after", "0"], undefined],
  ["nothing", [], undefined],
];

for (const [name, headers, expected] of CASES)
  test(`how long a service asks clients to wait: ${name}`, () => {
    assert.equal(retryAfter([...headers], NOW), expected);
  });
