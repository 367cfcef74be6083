import assert from "node:assert/strict";
import { test } from "node:test";
import { Budget, BudgetExceeded, endBudget, measured, type StepAccount, startBudget } from "./budget.ts";

function accountOf(run: () => void): number {
  let counted = 0;
  const account: StepAccount = {
    add(steps) {
      counted += steps;
    },
  };
  const budget = new Budget(10_000);
  budget.account = account;
  startBudget(budget);
  try {
    run();
  } finally {
    endBudget();
  }
  return counted;
}

/** Uses this many microseconds of processor time. */
function work(microseconds: number): void {
  const start = process.threadCpuUsage().user;
  while (process.threadCpuUsage().user - start < microseconds);
}

test("an account is charged for measured time if steps say less", () => {
  const counted = accountOf(() => measured(1, () => work(3000)));
  assert.ok(counted >= 3_000_000, `${counted} steps`);
});

test("work that may not fit into the remaining time does not begin", () => {
  let begun = false;
  assert.throws(
    () =>
      accountOf(() =>
        measured(1e9, () => {
          begun = true;
        }),
      ),
    BudgetExceeded,
  );
  assert.equal(begun, false);
});
