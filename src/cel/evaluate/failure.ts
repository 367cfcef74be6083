/**
 * An error of an evaluation, as a value: `false && error` is false, and an error that a request brings must not cost a stack
 * trace. `at` is the place in the expression; nodes add it to what functions give. `absent`: what the expression reads is
 * not there, so a condition over it is not met. Every other failure leaves open whether it is met.
 */
export class Failure {
  readonly what: string;
  readonly at: number | undefined;
  readonly absent: boolean;

  constructor(what: string, at?: number, absent = false) {
    this.what = what;
    this.at = at;
    this.absent = absent;
  }

  /** The same failure with the place of the node that gives it, unless it has a place already. */
  placed(at: number): Failure {
    return this.at === undefined ? new Failure(this.what, at, this.absent) : this;
  }

  /** The same failure where it counts as more than absence: the result for a list without this element is unknown. */
  hardened(): Failure {
    return this.absent ? new Failure(this.what, this.at) : this;
  }
}

export function fail(what: string): Failure {
  return new Failure(what);
}

/** A failure because something is not there: no such key, no such element, nothing in an optional, null. */
export function missing(what: string, at?: number): Failure {
  return new Failure(what, at, true);
}

/** The failure that decides about a condition: absence must not cover up that something else could not be evaluated. */
export function worse(a: Failure | undefined, b: Failure): Failure {
  return a === undefined || (a.absent && !b.absent) ? b : a;
}
