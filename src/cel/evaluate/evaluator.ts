/** The form of compiled expressions: closures over an activation and the variables of loops. */
import type { Activation } from "../environment/activation.ts";
import type { Checked } from "../environment/environment.ts";
import type { Node } from "../syntax/ast.ts";
import type { Failure } from "../values/failure.ts";
import type { CelValue } from "../values/types.ts";

/** The variables of loops and binds, by slot. One array for each evaluation; shared and empty without such variables. */
export type Slots = CelValue[];

/** A part of an expression, ready to run. */
export type Evaluator = (activation: Activation, slots: Slots) => CelValue | Failure;

/** The context in which nodes are compiled: the checked tree, and a function that compiles a part of it. */
export interface Compilation {
  readonly checked: Checked;
  readonly text: string;
  /** Whether nodes may be compiled together with their operands, which are then not compiled on their own. */
  readonly fuses: boolean;
  compile(node: Node): Evaluator;
}
