/** The names that expressions can use, and what the checker has found out about an expression. */
import type { Call, Node } from "../syntax/ast.ts";
import { CelMap } from "../values/map.ts";
import type { CelType, CelValue } from "../values/types.ts";
import type { Activation } from "./activation.ts";
import type { CustomFunction, CustomFunctions } from "./custom-function.ts";
import type { Overload } from "./overload.ts";
import { DYN, map, STRING, type Type } from "./types.ts";

/** Reads a variable, or a field of one, from the activation; undefined when it is absent. */
export type Read = (activation: Activation) => CelValue | undefined;

export interface Variable {
  readonly type: Type;
  readonly read: Read;
  /** Direct ways to fields of records, by name. */
  readonly fields?: ReadonlyMap<string, Read>;
  /** The members of `fields` that are null when they are absent. */
  readonly nullable?: ReadonlySet<string>;
}

/** The names that expressions can use. */
export interface Environment {
  readonly variables: ReadonlyMap<string, Variable>;
  readonly functions: ReadonlyMap<string, readonly Overload[]>;
  /** Functions that the configuration defines; none has a name of `functions`. */
  readonly custom: CustomFunctions;
  /** Names are looked up in here first: with `a.b`, `x` may mean `a.b.x`, `a.x` or `x`. */
  readonly container: string;
  /** Type mismatches are left to evaluation, as for unchecked expressions (conformance tests). */
  readonly lenient: boolean;
}

/** The qualified names that `name` may mean, in order of preference (cel-spec, "Name Resolution"). */
export function candidates(name: string, container: string): readonly string[] {
  if (name.startsWith(".")) return [name.slice(1)];
  if (container === "") return [name];
  const parts = container.split(".");
  const prefixes = parts.map((_, index) => parts.slice(0, parts.length - index).join("."));
  return [...prefixes.map((prefix) => `${prefix}.${name}`), name];
}

/** The overloads of a function; empty if there is no such function. */
export function overloadsOf(name: string, { functions, container }: Environment): readonly Overload[] {
  for (const candidate of candidates(name, container)) {
    const overloads = functions.get(candidate);
    if (overloads !== undefined) return overloads;
  }
  return [];
}

/** Whether functions have names that begin with `name` and a dot, as `base64` has. */
export function isNamespace(name: string, { functions }: Environment): boolean {
  return [...functions.keys()].some((known) => known.startsWith(`${name}.`));
}

/** A map of all variables that are present. */
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

/** The resolution of a name. */
export type Reference =
  | { readonly kind: "variable"; readonly name: string; readonly variable: Variable }
  | { readonly kind: "local"; readonly slot: number }
  | { readonly kind: "type"; readonly value: CelType };

/** A call with the overloads that may run; `args` begins with the target of a method. */
export interface ResolvedCall {
  readonly overloads: readonly Overload[];
  readonly args: readonly Node[];
}

/** A call of a function that the configuration defines; `args` as above. */
export interface CustomCall {
  readonly definition: CustomFunction;
  readonly args: readonly Node[];
}

export interface Checked {
  readonly type: Type;
  readonly types: ReadonlyMap<Node, Type>;
  readonly references: ReadonlyMap<Node, Reference>;
  readonly calls: ReadonlyMap<Call, ResolvedCall>;
  readonly customCalls: ReadonlyMap<Call, CustomCall>;
  /** Depth of nested loops, including those of called functions. */
  readonly loops: number;
  /** First of the slots that a loop or bind sets. */
  readonly slots: ReadonlyMap<Node, number>;
  readonly slotCount: number;
}
