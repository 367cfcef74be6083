import type { Activation } from "../activation.ts";
import type { CustomFunctions } from "../custom/custom-function.ts";
import type { Overload } from "../functions/overload.ts";
import { CelMap } from "../values/map.ts";
import type { CelValue } from "../values/types.ts";
import { DYN, map, STRING, type Type } from "./types.ts";

/** Reads a variable, or a field of one, from the activation; undefined when it is absent. */
export type Read = (activation: Activation) => CelValue | undefined;

export interface Variable {
  readonly type: Type;
  readonly read: Read;
  /** Direct ways to fields of records, by name. */
  readonly fields?: ReadonlyMap<string, Read>;
}

/** What expressions can name. */
export interface Environment {
  readonly variables: ReadonlyMap<string, Variable>;
  readonly functions: ReadonlyMap<string, readonly Overload[]>;
  /** Functions that the configuration defines; none has a name of `functions`. */
  readonly custom: CustomFunctions;
  /** Names are looked up in here first: with `a.b`, `x` may mean `a.b.x`, `a.x` or `x`. */
  readonly container: string;
  /** What does not fit is left to the evaluation, as for expressions that were never checked. */
  readonly lenient: boolean;
}

/** The names that `name` may stand for, in order of preference. */
export function candidates(name: string, container: string): readonly string[] {
  if (name.startsWith(".")) return [name.slice(1)];
  if (container === "") return [name];
  const parts = container.split(".");
  const prefixes = parts.map((_, index) => parts.slice(0, parts.length - index).join("."));
  return [...prefixes.map((prefix) => `${prefix}.${name}`), name];
}

/** All variables as one map of those that are there. */
export function everyVariable(variables: Environment["variables"]): Variable {
  const read = (activation: Activation): CelValue => {
    const all = new CelMap();
    for (const [name, variable] of variables) {
      const value = variable.read(activation);
      if (value !== undefined) all.add(name, value);
    }
    return all;
  };
  return { type: map(STRING, DYN), read };
}
