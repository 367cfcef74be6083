/** Operators that may leave operands unevaluated: `&&`, `||`, `?:`, and functions like them. */
import type { Call, Node } from "../syntax/ast.ts";
import { kindOf } from "../values/access.ts";
import { Failure, missing, worse } from "../values/failure.ts";
import { CelOptional, type CelValue } from "../values/types.ts";
import type { Compilation, Evaluator } from "./evaluator.ts";

/** Operators and functions that may leave operands unevaluated; undefined for other calls. */
export function compileLogic(node: Call, compilation: Compilation): Evaluator | undefined {
  const [first, second, third] = node.args;
  if (first === undefined || second === undefined)
    return node.name === "!_" ? undefined : optionalChain(node, compilation);
  switch (node.name) {
    case "_&&_":
      return decide(false, node, first, second, compilation);
    case "_||_":
      return decide(true, node, first, second, compilation);
    case "_?_:_":
      return third === undefined ? undefined : choose(node, first, second, third, compilation);
    default:
      return undefined;
  }
}

/** `&&` and `||`: `deciding` on one side decides, whatever the other is; else an error on one side is the value, the worse of two. */
function decide(deciding: boolean, node: Call, left: Node, right: Node, { compile }: Compilation): Evaluator {
  const [a, b] = [compile(left), compile(right)];
  const { at } = node;
  return (activation, slots) => {
    const first = a(activation, slots);
    if (first === deciding) return deciding;
    const second = b(activation, slots);
    if (second === deciding) return deciding;
    if (first === !deciding && second === !deciding) return second;
    const [a1, b1] = [mustBeBool(first, at), mustBeBool(second, at)];
    if (!(a1 instanceof Failure)) return b1;
    return b1 instanceof Failure ? worse(a1, b1) : a1;
  };
}

function mustBeBool(value: CelValue | Failure, at: number): CelValue | Failure {
  if (value instanceof Failure) return value;
  if (typeof value === "boolean") return value;
  if (value === null) return missing("null is neither true nor false", at);
  return new Failure(`no such overload: true or false is needed, not ${kindOf(value)}`, at);
}

function choose({ at }: Call, condition: Node, yes: Node, no: Node, { compile }: Compilation): Evaluator {
  const [test, a, b] = [compile(condition), compile(yes), compile(no)];
  return (activation, slots) => {
    const value = test(activation, slots);
    if (value === true) return a(activation, slots);
    return value === false ? b(activation, slots) : mustBeBool(value, at);
  };
}

/** `optional.orValue(x)` and `optional.or(x)`: x is evaluated only when there is no value. */
function optionalChain(node: Call, { compile, checked }: Compilation): Evaluator | undefined {
  const [fallback] = node.args;
  if (node.target === undefined || fallback === undefined || !checked.calls.has(node)) return undefined;
  if (node.name !== "or" && node.name !== "orValue") return undefined;
  const [optional, otherwise] = [compile(node.target), compile(fallback)];
  const unwrap = node.name === "orValue";
  return (activation, slots) => {
    const value = optional(activation, slots);
    if (value instanceof Failure) return value;
    if (!(value instanceof CelOptional)) return new Failure(`no such overload: ${kindOf(value)}.${node.name}`, node.at);
    if (value.value !== undefined) return unwrap ? value.value : value;
    return otherwise(activation, slots);
  };
}
