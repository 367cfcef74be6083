/** How functions are declared: name, types, cost and implementation. */
import type { Failure } from "../values/failure.ts";
import type { CelValue } from "../values/types.ts";
import type { Type } from "./types.ts";

/** One signature of a function. `member`: a method, whose receiver is the first parameter. */
export interface Overload {
  readonly name: string;
  readonly member: boolean;
  readonly params: readonly Type[];
  readonly result: Type;
  /**
   * What the function does. It is called only with values of the declared types; of lists and maps the elements are unknown.
   * A method, so that each function may declare the values that it takes.
   */
  run(...args: readonly (CelValue | undefined)[]): CelValue | Failure;
  /** Prepares the function for a constant second argument; throws Error when that can never work. */
  readonly prepare?: (constant: CelValue) => ((first: CelValue, ...rest: CelValue[]) => CelValue | Failure) | undefined;
  /** The last parameter may be repeated. */
  readonly variadic?: boolean;
  /** With constant arguments a failure is an error of the expression. */
  readonly mustWork?: boolean;
  /** The value depends on more than the arguments, so constants are not computed when the expression is compiled. */
  readonly impure?: boolean;
}

type Implementation = Overload["run"];

/** `name(params): result`. */
export function fn(name: string, params: readonly Type[], result: Type, run: Implementation): Overload {
  return { name, member: false, params, result, run };
}

/** `params[0].name(params[1], …): result`. */
export function method(name: string, params: readonly Type[], result: Type, run: Implementation): Overload {
  return { name, member: true, params, result, run };
}

/** Both forms: as a function and as a method. */
export function both(name: string, params: readonly Type[], result: Type, run: Implementation): Overload[] {
  return [fn(name, params, result, run), method(name, params, result, run)];
}
