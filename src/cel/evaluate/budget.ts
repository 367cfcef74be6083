/**
 * Steps that the evaluations for one request may take: about one for each character or element that is read or made, more
 * where that costs more. A step takes 1 to 2 ns.
 */
const STEPS = 8 * 1024 * 1024;
/** Processor time that they may take, in microseconds, without calls that are charged by the size of their arguments. */
const TIME = 5000;
/** Steps between two readings of the clock. A reading costs about 150 ns; an ordinary condition ends before the first. */
const SLICE = 8192;

/** The remaining budget of one request, shared by the expressions of all policies. */
export class Budget {
  steps = STEPS;
  microseconds = TIME;
}

/** Thrown, not returned as a Failure: `||` must not turn an evaluation that took too long into a result. */
class BudgetExceeded extends Error {
  constructor() {
    super("the expressions take too much work for one request; work on less data, or with fewer loops");
    this.name = "BudgetExceeded";
  }
}

// Evaluations are synchronous, so that one count serves them all and needs no place in every call.
let budget = new Budget();
/** Steps that have been taken from the budget but not used yet. */
let slice = 0;
/** Processor time at the last reading; undefined before the first, and after a long call that was charged by its size. */
let lookedAt: number | undefined;

/** The budget of an evaluation outside of requests. */
const own = new Budget();

/** Begins an evaluation; without a budget it may use as much as a request. */
export function startBudget(given?: Budget): void {
  if (given === undefined) {
    own.steps = STEPS;
    own.microseconds = TIME;
  }
  budget = given ?? own;
  lookedAt = undefined;
  takeSlice();
}

/** Ends an evaluation and returns unused steps to the budget. */
export function endBudget(): void {
  budget.steps += slice;
  slice = 0;
}

/** Counts `steps`; throws BudgetExceeded when steps or time run out. */
export function charge(steps: number): void {
  slice -= steps;
  if (slice < 0) nextSlice(steps);
}

function takeSlice(): void {
  slice = budget.steps >= SLICE ? SLICE : Math.max(0, budget.steps);
  budget.steps -= slice;
}

/** Called when `slice` is negative: the steps taken beyond it. */
function nextSlice(steps: number): void {
  endBudget();
  if (budget.steps < 0 || !hasTime(steps >= SLICE)) {
    budget.steps = Math.min(budget.steps, 0);
    throw new BudgetExceeded();
  }
  takeSlice();
}

/** Processor time, not time on the clock: a machine that is busy with something else must not make conditions fail. */
function hasTime(longCallFollows: boolean): boolean {
  const { user, system } = process.threadCpuUsage();
  const now = user + system;
  if (lookedAt !== undefined) budget.microseconds -= now - lookedAt;
  lookedAt = longCallFollows ? undefined : now;
  return budget.microseconds >= 0;
}
