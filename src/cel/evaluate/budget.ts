/** Steps that one evaluation may take: about one for each character or element that it looks at or makes. */
const LIMIT = 16 * 1024 * 1024;

/** Thrown, not returned: no `||` may turn an evaluation that takes too long into an answer. */
export class BudgetExceeded extends Error {
  constructor() {
    super("the evaluation takes too many steps; work on less data, or with fewer loops");
    this.name = "BudgetExceeded";
  }
}

// Evaluations are synchronous, so that one count serves them all and needs no place in every call.
let left = LIMIT;

export function startBudget(): void {
  left = LIMIT;
}

/** Counts `steps`; throws BudgetExceeded when there are none left. */
export function charge(steps: number): void {
  left -= steps;
  if (left < 0) throw new BudgetExceeded();
}
