import assert from "node:assert/strict";
import { test } from "node:test";
import { assertFailures, assertTrue } from "../testing/evaluate.ts";
import { Budget, endBudget, startBudget } from "../values/budget.ts";
import { formatText } from "./format.ts";

test("the precision of a number has at most 100 digits, so that a format cannot make long texts", () => {
  assertTrue(["'%.2f'.format([1.005]).size() == 4", "'%.100f'.format([0.5]).size() == 102"]);
  assertFailures({
    "'%.101f'.format([0.5])": /^a precision is at most 100$/,
    "'%.101e'.format([0.5])": /^a precision is at most 100$/,
  });
});

test("bytes and text as hexadecimal digits are charged for their size, also if the format fails afterwards", () => {
  const budget = new Budget(1_000_000);
  const before = budget.steps;
  startBudget(budget);
  const text = formatText("%x %d", ["a".repeat(1000), "b"]);
  endBudget();
  assert.equal(typeof text, "object");
  assert.ok(before - budget.steps > 3 * 8 * 1000, String(before - budget.steps));
});
