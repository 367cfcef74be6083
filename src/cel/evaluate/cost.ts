/** What an evaluation costs besides what its functions charge by size. */
import { children, type Node } from "../syntax/ast.ts";

/** Steps of each part of an expression, besides those of its function; and of a name, which may have to be read from a certificate. */
const PER_NODE = 16;
const PER_NAME = 64;

/** Steps of evaluating an expression once, besides those that its functions charge by size. */
export function costOf(node: Node): number {
  let cost = node.kind === "identifier" ? PER_NAME : PER_NODE;
  for (const child of children(node)) cost += costOf(child);
  return cost;
}
