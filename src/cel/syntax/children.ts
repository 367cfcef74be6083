import type { Node } from "./ast.ts";

/** The nodes directly below a node, in the order of the text. */
export function children(node: Node): readonly Node[] {
  switch (node.kind) {
    case "literal":
    case "identifier":
    case "message":
      return [];
    case "select":
      return [node.operand];
    case "call":
      return node.target === undefined ? node.args : [node.target, ...node.args];
    case "list":
      return node.elements.map(({ value }) => value);
    case "map":
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case "loop":
      return node.filter === undefined ? [node.range, node.body] : [node.range, node.filter, node.body];
    case "bind":
      return [node.value, node.body];
    case "optionalMap":
      return [node.operand, node.body];
    case "fallback":
      return node.choices;
  }
}
