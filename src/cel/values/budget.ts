/**
 * Steps of one microsecond: functions charge about one step per nanosecond, by the size of their input and output. Steps are
 * counted because reading a clock costs more than most conditions, and because the same request should always have the same result.
 */
const STEPS_PER_MICROSECOND = 1000;
/** The budget of a request by default (`config.expressions.perRequest`), in microseconds. */
const DEFAULT_MICROSECONDS = 1000;
/**
 * Processor time that evaluations may take, as a multiple of their steps: code that V8 has not optimized yet is several times slower. The
 * limit stops work that takes much longer than its steps say.
 */
const TIME_PER_STEPS = 5;
/** Steps between two readings of the clock. A reading costs about 150 ns; an ordinary condition ends before the first. */
const SLICE = 8192;

/** Records the steps that are used on its behalf. */
export interface StepAccount {
  add(steps: number): void;
}

/** The remaining budget of one request, shared by the expressions of all policies. */
export class Budget {
  steps: number;
  microseconds: number;
  /** Where the steps of the next evaluations are counted. */
  account: StepAccount | undefined;

  constructor(microseconds = DEFAULT_MICROSECONDS) {
    this.steps = microseconds * STEPS_PER_MICROSECOND;
    this.microseconds = microseconds * TIME_PER_STEPS;
  }
}

/** Thrown, not returned as a Failure: `||` must not turn an evaluation that took too long into a result. */
export class BudgetExceeded extends Error {
  constructor() {
    super(
      "the expressions do too much work for one request; use less data or fewer loops, or raise config.expressions.perRequest",
    );
    this.name = "BudgetExceeded";
  }
}

// Evaluations are synchronous, so that one count serves them all and needs no place in every call.
let budget = new Budget();
/** Steps that have been taken from the budget but not used yet. */
let slice = 0;
/** Steps of the budget when the evaluation began. */
let stepsBefore = 0;
/** Processor time at the last reading; undefined before the first. */
let lookedAt: number | undefined;
/** Microseconds between the readings of this evaluation. */
let took = 0;

/** Begins an evaluation; without a budget it may use as much as a request does by default. */
export function startBudget(given?: Budget): void {
  budget = given ?? new Budget();
  continueBudget();
}

/** Begins work on the value of the last evaluation, charged to the same budget. */
export function continueBudget(): void {
  stepsBefore = budget.steps;
  lookedAt = undefined;
  took = 0;
  takeSlice();
}

/** Ends an evaluation and returns unused steps to the budget. If the time was longer than the steps, the account is charged for the time. */
export function endBudget(): void {
  budget.steps += slice;
  slice = 0;
  budget.account?.add(Math.max(stepsBefore - budget.steps, took * STEPS_PER_MICROSECOND));
  stepsBefore = budget.steps;
}

/** Counts `steps`; throws BudgetExceeded when steps or time run out. */
export function charge(steps: number): void {
  slice -= steps;
  if (slice < 0) nextSlice();
}

/**
 * Does work that can take up to `most` nanoseconds but usually takes much less, so that charging steps for the worst case would reject
 * harmless work. The worst case must fit the remaining time, and the actual time is measured.
 */
export function measured<Result>(most: number, work: () => Result): Result {
  if (!hasTime() || most > budget.microseconds * 1000) throw exceeded();
  const result = work();
  if (!hasTime()) throw exceeded();
  return result;
}

function takeSlice(): void {
  slice = Math.min(SLICE, budget.steps);
  budget.steps -= slice;
}

/** Called when `slice` is negative: the steps taken beyond it. */
function nextSlice(): void {
  budget.steps += slice;
  slice = 0;
  if (budget.steps < 0 || !hasTime()) throw exceeded();
  takeSlice();
}

function exceeded(): BudgetExceeded {
  budget.steps = 0;
  slice = 0;
  return new BudgetExceeded();
}

/** Processor time, not time on the clock: a machine that is busy with something else must not make conditions fail. */
function hasTime(): boolean {
  const { user, system } = process.threadCpuUsage();
  const now = user + system;
  if (lookedAt !== undefined) {
    budget.microseconds -= now - lookedAt;
    took += now - lookedAt;
  }
  lookedAt = now;
  return budget.microseconds >= 0;
}
