/** Conditions that have the same result for all requests: one of the lints of a configuration. */
import type { Checked } from "../environment/environment.ts";
import { children, type Node } from "../syntax/ast.ts";

/**
 * The result that a condition has whatever it reads, where its logic and comparisons show it: `a == "x" && a == "y"` is false, `a != "x" ||
 * a != "y"` is true. undefined: it depends. `evaluate`: of a part that reads nothing.
 */
export function constantOf(
  root: Node,
  text: string,
  checked: Checked,
  evaluate: (node: Node) => unknown,
): boolean | undefined {
  const resultOf = (node: Node): boolean | undefined => {
    if (node.kind === "literal") return typeof node.value === "boolean" ? node.value : undefined;
    if (node.kind === "call") {
      const [first, second, third] = node.args;
      if (node.name === "!_" && first !== undefined) return not(resultOf(first));
      if (node.name === "_&&_" || node.name === "_||_") {
        const decisive = node.name === "_||_";
        const parts = partsOf(node, node.name);
        const values = parts.map(resultOf);
        if (values.includes(decisive) || contradicts(parts, decisive ? "_!=_" : "_==_", text)) return decisive;
        return values.every((value) => value === !decisive) ? !decisive : undefined;
      }
      if (node.name === "_?_:_" && first !== undefined && second !== undefined && third !== undefined) {
        const condition = resultOf(first);
        if (condition !== undefined) return resultOf(condition ? second : third);
        const yes = resultOf(second);
        return yes === resultOf(third) ? yes : undefined;
      }
    }
    if (!isClosed(node, checked)) return undefined;
    const value = evaluate(node);
    return typeof value === "boolean" ? value : undefined;
  };
  return resultOf(root);
}

function not(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value;
}

/** `a && b && c` as a list. */
function partsOf(node: Node, operator: string): Node[] {
  if (node.kind !== "call" || node.name !== operator) return [node];
  return node.args.flatMap((arg) => partsOf(arg, operator));
}

/** Whether one value is compared with two different texts. */
function contradicts(parts: readonly Node[], comparison: string, text: string): boolean {
  const seen = new Map<string, string>();
  for (const node of parts) {
    if (node.kind !== "call" || node.name !== comparison) continue;
    const [left, right] = node.args;
    const [literal, other] = left?.kind === "literal" ? [left, right] : [right, left];
    if (literal?.kind !== "literal" || typeof literal.value !== "string" || !isPath(other)) continue;
    const read = text.slice(other.from, other.to);
    if (seen.has(read) && seen.get(read) !== literal.value) return true;
    seen.set(read, literal.value);
  }
  return false;
}

/** A value that is the same wherever it is read, such as `request.method`; a function may give another one each time. */
function isPath(node: Node | undefined): node is Node {
  if (node === undefined) return false;
  if (node.kind === "identifier") return true;
  if (node.kind === "select") return !node.test && isPath(node.operand);
  return node.kind === "call" && node.name === "_[_]" && isPath(node.args[0]) && node.args[1]?.kind === "literal";
}

/** It reads no variable, and gives the same value each time. */
function isClosed(node: Node, checked: Checked): boolean {
  if (checked.references.has(node)) return false;
  if (node.kind === "identifier") return false;
  if (node.kind === "call") {
    const overloads = checked.calls.get(node)?.overloads;
    if (overloads === undefined || overloads.some(({ impure }) => impure === true)) return false;
  } else if (node.kind !== "literal" && node.kind !== "list") return false;
  return children(node).every((child) => isClosed(child, checked));
}
