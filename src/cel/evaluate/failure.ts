/**
 * An error of an evaluation, as a value: `false && error` is false, and an error that a request brings must not cost a stack
 * trace. `at` is the place in the expression; nodes add it to what functions give.
 */
export class Failure {
  readonly what: string;
  readonly at: number | undefined;

  constructor(what: string, at?: number) {
    this.what = what;
    this.at = at;
  }
}

export function fail(what: string): Failure {
  return new Failure(what);
}
