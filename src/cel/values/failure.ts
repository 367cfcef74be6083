/** Failures of evaluations, as values. */
import type { Need } from "./need.ts";

/**
 * An error of an evaluation, as a value: `false && error` is false, and an error that a client can cause must not cost a stack
 * trace. `at`: position in the expression; nodes add it to the failures of functions. `absent`: a value that the expression reads
 * is missing, so a condition is not met. After any other failure it is unknown whether it is met. `needs`: it fails only for lack of
 * these; with them it could have any result.
 */
export class Failure {
  readonly what: string;
  readonly at: number | undefined;
  readonly absent: boolean;
  readonly needs: readonly Need[] | undefined;

  constructor(what: string, at?: number, absent = false, needs?: readonly Need[]) {
    this.what = what;
    this.at = at;
    this.absent = absent;
    this.needs = needs;
  }

  /** The same failure with a position, unless it has one. */
  placed(at: number): Failure {
    return this.at === undefined ? new Failure(this.what, at, this.absent, this.needs) : this;
  }

  /** The same failure, no longer as absence: a loop that lacks something in one element has an unknown result, not an unmet one. */
  hardened(): Failure {
    return this.absent ? new Failure(this.what, this.at) : this;
  }
}

export function fail(what: string): Failure {
  return new Failure(what);
}

/** A failure because of absence: a missing key or element, an empty optional, null. */
export function missing(what: string, at?: number): Failure {
  return new Failure(what, at, true);
}

/** A failure because something is not known. */
export function unknown(needs: readonly Need[]): Failure {
  return new Failure(`not known: ${needs.map(({ what }) => what).join(" and ")}`, undefined, false, needs);
}

/**
 * The worse of two failures, which decides about a condition: absence must not hide that something else failed. What is not known could
 * still decide against a failure.
 */
export function worse(a: Failure | undefined, b: Failure): Failure {
  if (a?.needs !== undefined || b.needs !== undefined)
    return unknown([...new Map([...(a?.needs ?? []), ...(b.needs ?? [])].map((need) => [need.what, need])).values()]);
  return a === undefined || (a.absent && !b.absent) ? b : a;
}
