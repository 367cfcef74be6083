import type { CelEnvironment, Expression } from "./compile.ts";
import type { Activation } from "./environment/activation.ts";
import { children, isReserved, type Node } from "./syntax/ast.ts";
import { CelError } from "./syntax/cel-error.ts";
import { LIMITS, parse } from "./syntax/parser.ts";
import { toJson } from "./values/convert.ts";
import { CelMapLike } from "./values/types.ts";
import type { Scope } from "./variables/variables.ts";

/** The value of one path in an expression, such as `jwt.sub` or `request.headers["x-a"]`, in one evaluation. */
export interface InputValue {
  readonly text: string;
  /** The fields below the variable: `sub`; `headers`, `x-a`. */
  readonly path: readonly string[];
  /** JSON; null if absent. */
  readonly value: unknown;
}

/** Maximum number of paths shown for an expression. */
const MAX_INPUTS = 20;

/** The paths from variables that an expression reads, to explain its outcome in a trace. Made for the first trace. */
export class Inputs {
  readonly #paths: readonly {
    readonly text: string;
    readonly path: readonly string[];
    readonly expression: Expression;
  }[];

  /** `text` is a valid expression of the scope. */
  constructor(text: string, scope: Scope, cel: CelEnvironment) {
    const found = new Map<string, readonly string[]>();
    collect(parse(text, LIMITS), new Set(), found);
    this.#paths = [...found].slice(0, MAX_INPUTS).flatMap(([each, path]) => {
      const expression = compiled(each, scope, cel);
      return expression === undefined ? [] : [{ text: each, path, expression }];
    });
  }

  /** Omits whole header maps, bodies and paths that cannot be evaluated: they would be large, or secret. */
  of(activation: Activation): readonly InputValue[] {
    return this.#paths.flatMap(({ text, path, expression }) => {
      try {
        const value = expression.evaluate(activation);
        return value instanceof CelMapLike || value instanceof Uint8Array ? [] : [{ text, path, value: toJson(value) }];
      } catch (error) {
        return error instanceof CelError && error.absent ? [{ text, path, value: null }] : [];
      }
    });
  }
}

/** undefined for a path that is not an expression on its own, which is not shown. */
function compiled(text: string, scope: Scope, cel: CelEnvironment): Expression | undefined {
  try {
    return cel.compileExpression(text, scope);
  } catch {
    return undefined;
  }
}

/** The longest paths; `bound` are the names of loops and bindings, which change with each iteration. */
function collect(node: Node, bound: ReadonlySet<string>, found: Map<string, readonly string[]>): void {
  const path = pathOf(node, bound);
  if (path !== undefined) {
    if (path.length > 1) found.set(textOf(path), path.slice(1));
    return;
  }
  const inner = new Set([...bound, ...namesOf(node)]);
  for (const child of children(node)) collect(child, inner, found);
}

function namesOf(node: Node): readonly string[] {
  if (node.kind === "loop") return node.variables;
  return node.kind === "bind" || node.kind === "optionalMap" ? [node.name] : [];
}

/** The variable and the fields below it; undefined for anything but a path. */
function pathOf(node: Node, bound: ReadonlySet<string>): string[] | undefined {
  if (node.kind === "identifier") return bound.has(node.name) ? undefined : [node.name];
  if (node.kind === "select") {
    const path = pathOf(node.operand, bound);
    return path && [...path, node.field];
  }
  if (node.kind !== "call" || (node.name !== "_[_]" && node.name !== "_[?_]")) return undefined;
  const [operand, key] = node.args;
  if (operand === undefined || key?.kind !== "literal" || typeof key.value !== "string") return undefined;
  const path = pathOf(operand, bound);
  return path && [...path, key.value];
}

function textOf([variable = "", ...fields]: readonly string[]): string {
  const isName = (field: string): boolean => /^[A-Za-z_]\w*$/.test(field) && !isReserved(field);
  const steps = fields.map((field) => (isName(field) ? `.${field}` : `[${JSON.stringify(field)}]`));
  return variable + steps.join("");
}
