/** What an expression may read, so that bodies are buffered only where they are needed. */
import type { Checked } from "../environment/environment.ts";
import { children, type Node } from "../syntax/ast.ts";

const BODIES = ["body", "bodyPrefix"];
const MESSAGES = ["request", "response"];

/** The variables that an expression may read, in the functions that it calls too, and `request.body` and its like; `request.method` where it is named. */
export function readsOf(
  root: Node,
  { references, customCalls }: Checked,
  scope: readonly string[],
): ReadonlySet<string> {
  const reads = new Set<string>();
  const all = (name: string): void => {
    reads.add(name);
    if (MESSAGES.includes(name)) for (const body of BODIES) reads.add(`${name}.${body}`);
  };
  const visit = (node: Node): void => {
    const reference = references.get(node);
    if (node.kind === "call" && reference !== undefined) for (const name of scope) all(name);
    else if (reference?.kind === "variable") all(reference.name);
    const operand = node.kind === "select" ? references.get(node.operand) : undefined;
    if (node.kind === "select" && operand?.kind === "variable" && MESSAGES.includes(operand.name)) {
      reads.add(operand.name);
      if (BODIES.includes(node.field) || node.field === "method") reads.add(`${operand.name}.${node.field}`);
      return;
    }
    if (reference === undefined) for (const child of children(node)) visit(child);
  };
  visit(root);
  for (const { definition } of customCalls.values()) {
    for (const read of definition.reads) reads.add(read);
    if (definition.readsAll) for (const name of scope) all(name);
  }
  return reads;
}
