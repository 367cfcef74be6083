import assert from "node:assert/strict";
import { test } from "node:test";
import { assertFailures, assertTrue, evaluate } from "../testing/evaluate.ts";
import { Budget } from "../values/budget.ts";

test("the extremes of a list are those of all its elements", () => {
  const budget = new Budget(1_000_000);
  const values = Array.from({ length: 20_000 }, (_, i) => i);
  const metadata = { values: JSON.stringify([...values, -1]) };
  assert.equal(evaluate("math.greatest(json(metadata.values)) == 19999", { metadata, budget }), true);
  assert.equal(evaluate("math.least(json(metadata.values)) == -1", { metadata, budget }), true);
  assertTrue(["math.greatest(1, dyn(2.5), dyn(2u)) == 2.5", "math.least([3, 1, 2]) == 1"]);
  assertFailures({ "math.greatest([])": /at least one number/, "math.least(dyn(['a']))": /needs numbers/ });
});

test("bits of integers, also of negative ones and those with the highest bit", () => {
  assertTrue([
    "math.bitAnd(-1, 9223372036854775807) == 9223372036854775807",
    "math.bitOr(-9223372036854775807 - 1, 1) == -9223372036854775807",
    "math.bitXor(-1, 1) == -2",
    "math.bitOr(18446744073709551614u, 1u) == 18446744073709551615u",
    "math.bitXor(18446744073709551615u, 1u) == 18446744073709551614u",
    "math.bitNot(0u) == 18446744073709551615u",
    "math.bitShiftLeft(1, 63) < 0 && math.bitShiftRight(-1, 63) == 1 && math.bitShiftLeft(1u, 64) == 0u",
  ]);
});
