import type { CustomFunction } from "../custom/custom-function.ts";
import type { Overload } from "../functions/overload.ts";
import type { Call, Node } from "../syntax/ast.ts";
import type { CelType } from "../values/types.ts";
import type { Variable } from "./environment.ts";
import type { Type } from "./types.ts";

/** What a name turned out to be. */
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
  /** How many loops stand inside each other, with those of the functions that are called. */
  readonly loops: number;
  /** First of the slots that a loop or bind sets. */
  readonly slots: ReadonlyMap<Node, number>;
  readonly slotCount: number;
}
