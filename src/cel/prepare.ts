import type { ASTNode } from "@marcbachmann/cel-js";
import { CelError } from "./cel-error.ts";
import { MATCHES } from "./environment.ts";
import { compilePattern } from "./patterns.ts";

/** Macros that evaluate an argument once for each element; nested ones multiply. */
const LOOPS = new Set(["all", "exists", "exists_one", "filter", "map"]);
const MAX_NESTED_LOOPS = 2;
/** Each `cel.bind` can double a value, so nested ones grow it exponentially. */
const MAX_NESTED_BINDS = 4;

interface Nesting {
  readonly loops: number;
  readonly binds: number;
}

/**
 * Prepares a parsed expression for its check: sends `matches` to linear-time patterns, compiles those that are written out,
 * and refuses expressions that could run for long. Throws CelError.
 */
export function prepare(root: ASTNode, text: string): void {
  visit(root, { loops: 0, binds: 0 }, text);
}

function visit(node: ASTNode, outer: Nesting, text: string): void {
  let inner = outer;
  if (node.op === "rcall" || node.op === "call") {
    const name = node.args[0];
    const parameters = node.op === "rcall" ? node.args[2] : node.args[1];
    if (name === "matches") {
      if (node.op === "rcall") node.args[0] = MATCHES;
      checkPattern(parameters.at(-1), text);
    } else if (node.op === "rcall" && LOOPS.has(name)) {
      inner = { ...outer, loops: outer.loops + 1 };
      if (inner.loops > MAX_NESTED_LOOPS)
        throw new CelError(`more than ${MAX_NESTED_LOOPS} nested loops (${name})`, text, node.start);
    } else if (name === "bind") {
      inner = { ...outer, binds: outer.binds + 1 };
      if (inner.binds > MAX_NESTED_BINDS)
        throw new CelError(`more than ${MAX_NESTED_BINDS} nested binds`, text, node.start);
    }
  }
  for (const child of children(node.args)) visit(child, inner, text);
}

/** A pattern that is written out is wrong for every request, so it is an error of the expression. */
function checkPattern(node: ASTNode | undefined, text: string): void {
  if (node?.op !== "value" || typeof node.args !== "string") return;
  try {
    compilePattern(node.args);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CelError(`${why}; write the pattern in RE2 syntax`, text, node.start, cause);
  }
}

/** The nodes among the operands of a node, which may be lists or lists of pairs. */
function children(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(children);
  return isNode(args) ? [args] : [];
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === "object" && value !== null && "op" in value && "args" in value;
}
