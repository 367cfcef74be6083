import type { Select } from "../syntax/ast.ts";
import { isMap, kindOf, mapGet } from "../values/access.ts";
import { CelOptional, type CelValue } from "../values/types.ts";
import type { Compilation, Evaluator } from "./evaluator.ts";
import { Failure } from "./failure.ts";
import { compileHeader } from "./fast-paths.ts";

/** `a.b`, `a.?b` and `has(a.b)`. */
export function compileSelect(node: Select, compilation: Compilation): Evaluator {
  const missing = new Failure(`no such key: ${node.field}`, node.at);
  const direct = compileHeader(node, compilation) ?? compileField(node, compilation, missing);
  if (direct !== undefined) return direct;
  const { field, test, at } = node;
  const operand = compilation.compile(node.operand);
  return (activation, slots) => {
    const container = operand(activation, slots);
    if (container instanceof Failure) return container;
    const value = selectField(container, field);
    if (value instanceof Failure) return new Failure(value.what, at);
    if (test)
      return container instanceof CelOptional
        ? value instanceof CelOptional && value.value !== undefined
        : value !== undefined;
    if (node.optional || container instanceof CelOptional)
      return value instanceof CelOptional ? value : new CelOptional(value);
    return value === undefined ? missing : value;
  };
}

function selectField(container: CelValue, field: string): CelValue | undefined | Failure {
  if (container instanceof CelOptional) {
    if (container.value === undefined) return CelOptional.NONE;
    const value = selectField(container.value, field);
    if (value instanceof Failure) return value;
    return value instanceof CelOptional ? value : new CelOptional(value);
  }
  return isMap(container)
    ? mapGet(container, field)
    : new Failure(`a value of type ${kindOf(container)} has no field ${field}`);
}

/** Fields of the gateway's variables, such as `request.path`, are read straight from the activation. */
function compileField(node: Select, { checked }: Compilation, missing: Failure): Evaluator | undefined {
  const reference = checked.references.get(node.operand);
  if (reference?.kind !== "variable") return undefined;
  const read = reference.variable.fields?.get(node.field);
  if (read === undefined) return undefined;
  if (node.test) return (activation) => read(activation) !== undefined;
  if (node.optional) return (activation) => new CelOptional(read(activation));
  return (activation) => {
    const value = read(activation);
    return value === undefined ? missing : value;
  };
}
