import type { Select } from "../syntax/ast.ts";
import { isMap, kindOf, mapGet } from "../values/access.ts";
import { CelOptional, type CelValue } from "../values/types.ts";
import type { Compilation, Evaluator } from "./evaluator.ts";
import { Failure, missing } from "./failure.ts";
import { compileHeader } from "./fast-paths.ts";

/** `a.b`, `a.?b` and `has(a.b)`. */
export function compileSelect(node: Select, compilation: Compilation): Evaluator {
  const none = missing(`no such key: ${node.field}`, node.at);
  const direct = compileHeader(node, compilation) ?? compileField(node, compilation, none);
  if (direct !== undefined) return direct;
  const { field, test, at } = node;
  const operand = compilation.compile(node.operand);
  return (activation, slots) => {
    const container = operand(activation, slots);
    // What is absent has no fields: `has(jwt.a.b)` is false without `jwt.a`, where the language has an error.
    if (container instanceof Failure) return test && container.absent ? false : container;
    const value = selectField(container, field, test || node.optional);
    if (value instanceof Failure) return value.placed(at);
    if (test)
      return container instanceof CelOptional
        ? value instanceof CelOptional && value.value !== undefined
        : value !== undefined;
    if (node.optional || container instanceof CelOptional)
      return value instanceof CelOptional ? value : new CelOptional(value);
    return value === undefined ? none : value;
  };
}

/** `lenient`: null has no fields, instead of that being an error. */
function selectField(container: CelValue, field: string, lenient: boolean): CelValue | undefined | Failure {
  if (container instanceof CelOptional) {
    if (container.value === undefined) return CelOptional.NONE;
    const value = selectField(container.value, field, lenient);
    if (value instanceof Failure) return value;
    return value instanceof CelOptional ? value : new CelOptional(value);
  }
  if (container === null) return lenient ? undefined : missing(`no such key: ${field}`);
  return isMap(container)
    ? mapGet(container, field)
    : new Failure(`a value of type ${kindOf(container)} has no field ${field}`);
}

/** Fields of the gateway's variables, such as `request.path`, are read straight from the activation. */
function compileField(node: Select, { checked }: Compilation, none: Failure): Evaluator | undefined {
  const reference = checked.references.get(node.operand);
  if (reference?.kind !== "variable") return undefined;
  const read = reference.variable.fields?.get(node.field);
  if (read === undefined) return undefined;
  if (node.test) return (activation) => read(activation) !== undefined;
  if (node.optional) return (activation) => new CelOptional(read(activation));
  return (activation) => {
    const value = read(activation);
    return value === undefined ? none : value;
  };
}
