/** Fields of records and maps, and the shortcut for header fields that are named by a constant. */
import type { Activation } from "../environment/activation.ts";
import type { Checked } from "../environment/environment.ts";
import type { Call, Node, Select } from "../syntax/ast.ts";
import { isMap, kindOf, mapGet } from "../values/access.ts";
import { Failure, missing } from "../values/failure.ts";
import { findHeader, findLatin1, type HeaderSource } from "../values/headers.ts";
import { comparedAsText, repeatedField } from "../values/repeated.ts";
import { CelOptional, type CelValue } from "../values/types.ts";
import type { Compilation, Evaluator } from "./evaluator.ts";

/** `a.b`, `a.?b` and `has(a.b)`. */
export function compileSelect(node: Select, compilation: Compilation): Evaluator {
  const none = missing(`no such key: ${node.field}`, node.at);
  const direct = compileHeader(node, compilation) ?? compileField(node, compilation, none);
  if (direct !== undefined) return direct;
  const { field, test, at } = node;
  const operand = compilation.compile(node.operand);
  return (activation, slots) => {
    const container = operand(activation, slots);
    // An absent value has no fields: `has(jwt.a.b)` is false without `jwt.a`, which is an error in standard CEL.
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
  const whenAbsent = reference.variable.nullable?.has(node.field) === true ? null : none;
  return (activation) => {
    const value = read(activation);
    return value === undefined ? whenAbsent : value;
  };
}

/** A header with a constant name. */
interface ConstantHeader {
  readonly name: string;
  readonly source: (activation: Activation) => HeaderSource | undefined;
}

const SOURCES: Readonly<Record<string, ConstantHeader["source"]>> = {
  request: ({ request }) => request,
  // A response has no authority, so that its list serves as it is.
  response: ({ response }) => response,
};

/** `request.headers.x`, `request.headers["x"]`, `request.headers[?"x"]`, has(): a scan of the list, no map made. */
export function compileHeader(node: Node, { checked }: Compilation): Evaluator | undefined {
  const header = constantHeader(node, checked);
  if (header === undefined) return undefined;
  const { name, source } = header;
  const find = (activation: Activation): CelValue | undefined => {
    const parts = source(activation);
    return parts === undefined ? undefined : findHeader(parts, name);
  };
  if (node.kind === "select" && node.test) return (activation) => find(activation) !== undefined;
  if ((node.kind === "select" && node.optional) || (node.kind === "call" && node.name === "_[?_]"))
    return (activation) => {
      const value = find(activation);
      return value === undefined ? CelOptional.NONE : new CelOptional(value);
    };
  const none = missing(`no such key: ${name}`, node.at);
  return (activation) => find(activation) ?? none;
}

/** `==` and `!=` with a constant text on one side: header values are compared as they are, without decoding. */
export function compileConstantEquality(node: Call, compilation: Compilation): Evaluator | undefined {
  if (node.name !== "_==_" && node.name !== "_!=_") return undefined;
  const [left, right] = node.args;
  if (left === undefined || right === undefined) return undefined;
  const [operand, constant] = isText(right) ? [left, right.value] : isText(left) ? [right, left.value] : [];
  if (operand === undefined || typeof constant !== "string") return undefined;
  const whenEqual = node.name === "_==_";
  const header = constantHeader(operand, compilation.checked);
  if (header !== undefined && isPlainRead(operand) && /^[\x20-\x7e]*$/.test(constant)) {
    const { name, source } = header;
    const none = missing(`no such key: ${name}`, operand.at);
    const several = new Failure(comparedAsText(name), node.at);
    return (activation) => {
      const parts = source(activation);
      const value = parts === undefined ? undefined : findLatin1(parts, name);
      if (typeof value === "string") return (value === constant) === whenEqual;
      return value === undefined ? none : several;
    };
  }
  if (header !== undefined) return undefined;
  const evaluate = compilation.compile(operand);
  return (activation, slots) => {
    const value = evaluate(activation, slots);
    if (value instanceof Failure) return value;
    if (typeof value !== "object") return (value === constant) === whenEqual;
    const field = repeatedField(value);
    return field === undefined ? !whenEqual : new Failure(comparedAsText(field), node.at);
  };
}

/** Comparisons of `response.code` and ports with constants in plain numbers instead of bigint. */
export function compileStatusComparison(node: Call, { checked }: Compilation): Evaluator | undefined {
  const compare = COMPARISONS[node.name];
  const [left, right] = node.args;
  if (compare === undefined || left?.kind !== "select" || right?.kind !== "literal" || left.test || left.optional)
    return undefined;
  const reference = checked.references.get(left.operand);
  if (reference?.kind !== "variable" || typeof right.value !== "bigint" || !Number.isSafeInteger(Number(right.value)))
    return undefined;
  const read = NUMBERS[`${reference.name}.${left.field}`];
  if (read === undefined) return undefined;
  const limit = Number(right.value);
  const none = missing(`no such key: ${left.field}`, left.at);
  return (activation) => {
    const value = read(activation);
    return value === undefined ? none : compare(value, limit);
  };
}

const NUMBERS: Readonly<Record<string, (activation: Activation) => number | undefined>> = {
  "response.code": ({ response }) => response?.status,
  "source.port": ({ source }) => source?.port,
  "destination.port": ({ destination }) => destination?.port,
};
const COMPARISONS: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  "_==_": (a, b) => a === b,
  "_!=_": (a, b) => a !== b,
  "_<_": (a, b) => a < b,
  "_<=_": (a, b) => a <= b,
  "_>_": (a, b) => a > b,
  "_>=_": (a, b) => a >= b,
};

function isText(node: Node): node is Node & { kind: "literal"; value: CelValue } {
  return node.kind === "literal" && typeof node.value === "string";
}

function isPlainRead(node: Node): boolean {
  return node.kind === "select" ? !node.test && !node.optional : node.kind === "call" && node.name === "_[_]";
}

function constantHeader(node: Node, checked: Checked): ConstantHeader | undefined {
  const [container, name] = keyOf(node);
  if (
    container?.kind !== "select" ||
    name === undefined ||
    container.field !== "headers" ||
    container.test ||
    container.optional
  )
    return undefined;
  const reference = checked.references.get(container.operand);
  const source =
    reference?.kind === "variable" && reference.variable.fields !== undefined ? SOURCES[reference.name] : undefined;
  return source === undefined ? undefined : { name: name.toLowerCase(), source };
}

function keyOf(node: Node): readonly [Node | undefined, string | undefined] {
  if (node.kind === "select") return [node.operand, node.field];
  if (node.kind !== "call" || (node.name !== "_[_]" && node.name !== "_[?_]")) return [undefined, undefined];
  const [container, key] = node.args;
  return [container, key?.kind === "literal" && typeof key.value === "string" ? key.value : undefined];
}
