import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferBudget, BufferShare } from "./buffer-budget.ts";

test("all shares together stay within the limit of the budget; bytes that do not fit are not counted", () => {
  const budget = new BufferBudget();
  const [one, other] = [new BufferShare(budget, 100), new BufferShare(budget, 100)];
  assert.deepEqual([one.take(60), other.take(41), other.take(40), one.take(1)], [true, false, true, false]);
  assert.equal(budget.used, 100);
  one.give(10);
  assert.equal(other.take(10), true);
});

test("a share returns no more than it took, and all of it at the end", () => {
  const budget = new BufferBudget();
  const [one, other] = [new BufferShare(budget, 100), new BufferShare(budget, 100)];
  one.take(30);
  other.take(50);
  one.give(40);
  assert.equal(budget.used, 50);
  one.take(20);
  one.close();
  assert.equal(budget.used, 50);
});

test("bytes that arrive after the end of an exchange are not counted: they would never be returned", () => {
  const budget = new BufferBudget();
  const share = new BufferShare(budget, 100);
  share.close();
  assert.equal(share.take(1000), true);
  assert.equal(budget.used, 0);
});
