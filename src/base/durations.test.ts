import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, intendedDuration, parseDuration } from "./durations.ts";

test("durations are written as Go writes them", () => {
  const written = {
    "0s": 0,
    "1ns": 1e-6,
    "1.5µs": 1.5e-3,
    "500ms": 500,
    "1.5ms": 1.5,
    "1s": 1000,
    "1.5s": 1500,
    "59.999s": 59_999,
    "1m0s": 60_000,
    "1m30s": 90_000,
    "3m0s": 180_000,
    "1h0m0s": 3_600_000,
    "25h1m0.25s": 90_060_250,
  };
  for (const [text, ms] of Object.entries(written)) assert.equal(formatDuration(ms), text);
  for (const [text, ms] of Object.entries(written)) assert.ok(Math.abs((parseDuration(text) ?? -1) - ms) < 1e-9, text);
});

test("what people write elsewhere is turned into a duration", () => {
  const intended = {
    "10": "10s",
    "10 s": "10s",
    "10sec": "10s",
    "1.5 Minutes": "1.5m",
    "2 hrs": "2h",
    "250 millis": "250ms",
    "2d": "48h",
    "0.5 days": "12h",
  };
  for (const [text, duration] of Object.entries(intended)) {
    assert.equal(intendedDuration(text), duration, text);
    assert.notEqual(parseDuration(duration), undefined, duration);
  }
  for (const text of ["", "soon", "-1s", "2 weeks", "1h 30m"]) assert.equal(intendedDuration(text), undefined, text);
});
