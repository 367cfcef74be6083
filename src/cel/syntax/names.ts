import type { Node } from "./ast.ts";

/** `a.b.c` as text when the node is nothing but names, else undefined. */
export function nameOf(node: Node): string | undefined {
  if (node.kind === "identifier") return node.absolute ? `.${node.name}` : node.name;
  if (node.kind !== "select" || node.test || node.optional) return undefined;
  const operand = nameOf(node.operand);
  return operand === undefined ? undefined : `${operand}.${node.field}`;
}

const RESERVED = new Set(
  "as break const continue else for function if import let loop package namespace return var void while".split(" "),
);

/** Whether a word can never be the name of a variable. */
export function isReserved(word: string): boolean {
  return RESERVED.has(word) || word === "in" || word === "true" || word === "false" || word === "null";
}
