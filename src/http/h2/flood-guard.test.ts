import assert from "node:assert/strict";
import { test } from "node:test";
import { FloodGuard } from "./flood-guard.ts";

/** How many PINGs pass; `used` is the useful work so far at each. */
function passed(guard: FloodGuard, tries: number, used: (i: number) => number): number {
  for (let i = 0; i < tries; i++) if (guard.count("pings", used(i)) !== undefined) return i;
  return tries;
}

test("a burst passes, more does not, and each kind is counted separately", () => {
  const guard = new FloodGuard(0);
  assert.equal(
    passed(guard, 5000, () => 0),
    1000,
  );
  assert.equal(guard.count("pings", 0), "PING frames");
  assert.equal(guard.count("resets", 0), undefined, "each kind has its own budget");
});

test("useful work on the connection lets more pass", () => {
  assert.equal(
    passed(new FloodGuard(0), 5000, (i) => i),
    5000,
  );
  // Half as much is too little in the long run.
  assert.ok(passed(new FloodGuard(0), 5000, (i) => i / 2) < 5000);
});

test("the count falls with time", () => {
  const guard = new FloodGuard(0);
  passed(guard, 1000, () => 0);
  // However often it is swept.
  for (let now = 10; now <= 1000; now += 10) guard.sweep(now);
  assert.equal(
    passed(guard, 1000, () => 0),
    100,
  );
  guard.sweep(12_000);
  assert.equal(
    passed(guard, 5000, () => 0),
    1000,
  );
});
