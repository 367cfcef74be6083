import assert from "node:assert/strict";
import { test } from "node:test";
import { Budget, endBudget, startBudget } from "../values/budget.ts";
import { find, splitAt } from "./search.ts";

/** The result of `work`, with the steps that it used. */
function measured<Result>(work: () => Result): { readonly result: Result; readonly steps: number } {
  const budget = new Budget(1_000_000);
  const before = budget.steps;
  startBudget(budget);
  const result = work();
  endBudget();
  return { result, steps: before - budget.steps };
}

test("a part of any length is found where indexOf finds it, also across the edges of the blocks searched at a time", () => {
  const filler = "ab".repeat(40_000);
  for (const length of [0, 1, 2, 7, 249, 250, 251, 300, 5000]) {
    const part = length === 0 ? "" : `${"ab".repeat(length).slice(0, length - 1)}c`;
    for (const before of [0, 1, 32_767, 32_768, 32_770, 65_530, 80_000]) {
      const text = `${filler.slice(0, before)}${part}${filler}${part}`;
      for (const from of [0, 1, before + 1])
        assert.equal(measured(() => find(text, part, from)).result, text.indexOf(part, from), `${length} at ${before}`);
    }
  }
  assert.equal(measured(() => find("abc", "d".repeat(300))).result, -1);
  assert.equal(measured(() => find(`${"a".repeat(299)}b${"a".repeat(300)}b`, `${"a".repeat(300)}b`)).result, 300);
});

test("a long part costs as much in a text that almost contains it as in any other", () => {
  // V8 would compare 10,000 characters at each of 100,000 positions.
  const part = `${"a".repeat(5000)}b${"a".repeat(5000)}`;
  const { result, steps } = measured(() => find("a".repeat(100_000), part));
  assert.equal(result, -1);
  assert.ok(steps >= 400_000 && steps < 600_000, String(steps));
});

test("parts between separators, up to a limit, each charged", () => {
  const { result, steps } = measured(() => splitAt("a,b,,c,", ",", Number.POSITIVE_INFINITY, 100));
  assert.deepEqual(result, ["a", "b", "", "c", ""]);
  assert.ok(steps >= 400);
  assert.deepEqual(measured(() => splitAt("a,b,c", ",", 2, 1)).result, ["a", "b,c"]);
  assert.deepEqual(measured(() => splitAt("a,b,c", ",", 1, 1)).result, ["a,b,c"]);
});
