import type { Activation } from "../activation.ts";
import type { Type } from "../check/types.ts";
import type { Failure } from "../evaluate/failure.ts";
import type { CelValue } from "../values/types.ts";

/** How a function is called. `params` begins with `this` when it is called after a dot. */
export interface Signature {
  readonly name: string;
  readonly member: boolean;
  readonly params: readonly string[];
  /** The last parameter is the list of all further arguments, of which there may be none. */
  readonly variadic: boolean;
}

/** A function that the configuration defines, compiled once for all expressions that call it. */
export interface CustomFunction extends Signature {
  /** Of its value, as far as it is known whatever the arguments. */
  readonly type: Type;
  /** What the body and the functions that it calls read; as that of an expression. */
  readonly reads: ReadonlySet<string>;
  /** It calls `variables()`, and so reads whatever there is where it is called. */
  readonly readsAll: boolean;
  /** Variables that have to exist where it is called, with the functions through which it reads them. */
  readonly needs: ReadonlyMap<string, readonly CustomFunction[]>;
  /** How many loops stand inside each other, with those of the functions that it calls. */
  readonly loops: number;
  /** `frame` holds the value of each parameter; the body keeps its own variables behind them. */
  run(activation: Activation, frame: CelValue[]): CelValue | Failure;
}

/** By name. */
export type CustomFunctions = ReadonlyMap<string, readonly CustomFunction[]>;

export const NO_FUNCTIONS: CustomFunctions = new Map();

/**
 * The definition that a call with `count` arguments means, what stands before the dot among them: one with as many
 * parameters, else the variadic one that names most of the arguments.
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

/** As the definition has it: `this.joined(first, rest...)`. */
export function formatSignature({ name, member, params, variadic }: Signature): string {
  const names = params.slice(member ? 1 : 0).join(", ");
  return `${member ? "this." : ""}${name}(${names}${variadic ? "..." : ""})`;
}
