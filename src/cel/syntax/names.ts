import type { Node } from "./ast.ts";

/** `a.b.c` as text when the node is nothing but names, else undefined. */
export function nameOf(node: Node): string | undefined {
  if (node.kind === "identifier") return node.absolute ? `.${node.name}` : node.name;
  if (node.kind !== "select" || node.test || node.optional) return undefined;
  const operand = nameOf(node.operand);
  return operand === undefined ? undefined : `${operand}.${node.field}`;
}
