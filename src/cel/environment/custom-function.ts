/** Functions that a configuration defines, as the checker and the evaluator know them. */
import type { Failure } from "../values/failure.ts";
import type { CelValue } from "../values/types.ts";
import type { Activation } from "./activation.ts";
import type { Type } from "./types.ts";

/** The signature of a function. `params` begins with `this` for methods. */
export interface Signature {
  readonly name: string;
  readonly member: boolean;
  readonly params: readonly string[];
  /** The last parameter is the list of all further arguments, which may be empty. */
  readonly variadic: boolean;
}

/** A function that the configuration defines, compiled once for all expressions that call it. */
export interface CustomFunction extends Signature {
  /** Result type, as far as it does not depend on the arguments. */
  readonly type: Type;
  /** What the body and the functions that it calls read; as that of an expression. */
  readonly reads: ReadonlySet<string>;
  /** Calls `variables()`, and so reads all variables in the scope of its caller. */
  readonly readsAll: boolean;
  /** Variables that have to exist where it is called, with the functions through which it reads them. */
  readonly needs: ReadonlyMap<string, readonly CustomFunction[]>;
  /** Depth of nested loops, including those of the functions that it calls. */
  readonly loops: number;
  /** `frame` holds the value of each parameter; the body keeps its own variables behind them. */
  run(activation: Activation, frame: CelValue[]): CelValue | Failure;
}

/** By name. */
export type CustomFunctions = ReadonlyMap<string, readonly CustomFunction[]>;

export const NO_FUNCTIONS: CustomFunctions = new Map();

/**
 * The definition for a call with `count` arguments, including the receiver: the one with as many parameters, otherwise the
 * variadic one with the most named parameters.
 */
export function definitionFor<T extends Signature>(
  definitions: readonly T[] | undefined,
  member: boolean,
  count: number,
): T | undefined {
  let found: T | undefined;
  for (const definition of definitions ?? []) {
    const { params, variadic } = definition;
    if (definition.member !== member) continue;
    if (!variadic && params.length === count) return definition;
    if (variadic && params.length - 1 <= count && params.length > (found?.params.length ?? 0)) found = definition;
  }
  return found;
}

/** As written in the definition: `this.joined(first, rest...)`. */
export function formatSignature({ name, member, params, variadic }: Signature): string {
  const names = params.slice(member ? 1 : 0).join(", ");
  return `${member ? "this." : ""}${name}(${names}${variadic ? "..." : ""})`;
}
