/** Calls of functions and operators as closures: bound at compile time if the types are known, else by the values. */
import { messageOf } from "../../base/errors.ts";
import { formatSignature } from "../environment/custom-function.ts";
import type { Overload } from "../environment/overload.ts";
import type { Type } from "../environment/types.ts";
import { signOf } from "../functions/operators.ts";
import type { Call, Node } from "../syntax/ast.ts";
import { CelError } from "../syntax/cel-error.ts";
import { kindOf } from "../values/access.ts";
import { BudgetExceeded, charge, endBudget, startBudget } from "../values/budget.ts";
import { Failure, missing } from "../values/failure.ts";
import { CelOptional, type CelValue } from "../values/types.ts";
import type { Compilation, Evaluator } from "./evaluator.ts";
import { compileLogic } from "./logic.ts";
import { compileConstantEquality, compileHeader, compileStatusComparison } from "./selects.ts";

/** Functions and operators. If the types are known, the overload is bound at compile time; otherwise the values choose it. */
export function compileCall(node: Call, compilation: Compilation): Evaluator {
  const custom = compileCustomCall(node, compilation);
  if (custom !== undefined) return custom;
  const special =
    compileLogic(node, compilation) ??
    compileHeader(node, compilation) ??
    (compilation.fuses
      ? (compileStatusComparison(node, compilation) ?? compileConstantEquality(node, compilation))
      : undefined);
  if (special !== undefined) return special;
  const resolved = compilation.checked.calls.get(node);
  if (resolved === undefined) {
    const failure = new Failure(`no such overload: unknown function ${node.name}`, node.at);
    return () => failure;
  }
  const { overloads, args } = resolved;
  const types = args.map((arg) => compilation.checked.types.get(arg) ?? { name: "dyn", params: [] });
  const [overload] = overloads;
  const evaluators = args.map((arg) => compilation.compile(arg));
  if (overload === undefined || overloads.length > 1) return dispatch(node, overloads, evaluators);
  const certain = isCertain(overload, types);
  const first = prepared(node, overload, args, evaluators, compilation.text, certain);
  if (!certain) return first ?? dispatch(node, overloads, evaluators);
  return first ?? folded(node, overload, compilation, direct(node, overload, evaluators));
}

/** Constant folding. */
function folded(node: Call, overload: Overload, compilation: Compilation, evaluate: Evaluator): Evaluator {
  if (overload.impure === true || !isConstant(node, compilation)) return evaluate;
  const value = valueNow(evaluate);
  if (value === undefined) return evaluate;
  if (!(value instanceof Failure)) return () => value;
  if (overload.mustWork === true) throw new CelError(value.what, compilation.text, value.at);
  return evaluate;
}

/** undefined if the work exceeds what one request may use. */
function valueNow(evaluate: Evaluator): CelValue | Failure | undefined {
  startBudget();
  try {
    return evaluate({}, []);
  } catch (error) {
    if (error instanceof BudgetExceeded) return undefined;
    throw error;
  } finally {
    endBudget();
  }
}

/** Literals, and calls of one function with constants that takes nothing else into account. */
function isConstant(node: Node, compilation: Compilation): boolean {
  if (node.kind === "literal") return true;
  const resolved = node.kind === "call" ? compilation.checked.calls.get(node) : undefined;
  if (resolved?.overloads.length !== 1 || resolved.overloads[0]?.impure === true) return false;
  return resolved.args.every((arg) => isConstant(arg, compilation));
}

/** Whether the overload accepts values of these types without a check at run time. */
function isCertain({ params, variadic }: Overload, types: readonly Type[]): boolean {
  return types.every((type, index) => {
    const param = params[index] ?? (variadic === true ? params.at(-1) : undefined);
    return param === undefined || isAny(param) || (type.name === param.name && type.name !== "dyn");
  });
}

function isAny(param: Type): boolean {
  return param.variable === true || param.name === "dyn";
}

function prepared(
  node: Call,
  overload: Overload,
  args: readonly Node[],
  evaluators: readonly Evaluator[],
  text: string,
  certain: boolean,
): Evaluator | undefined {
  const [first, constant] = args;
  const [evaluate] = evaluators;
  if (overload.prepare === undefined || first === undefined || evaluate === undefined || constant?.kind !== "literal")
    return undefined;
  const run = prepare(overload.prepare, constant.value, text, constant.at);
  if (run === undefined) return undefined;
  const kind = certain ? undefined : overload.params[0]?.name;
  const others = evaluators.slice(2);
  if (others.length > 0) return preparedWith(node, overload, constant.value, run, evaluate, others);
  return (activation, slots) => {
    const value = evaluate(activation, slots);
    if (value instanceof Failure) return value;
    if (kind !== undefined && kindOf(value) !== kind) return noOverload(node, [kindOf(value), kindOf(constant.value)]);
    return placed(run(value), node.at);
  };
}

/** The same for calls with further arguments. */
function preparedWith(
  node: Call,
  { params }: Overload,
  constant: CelValue,
  run: NonNullable<ReturnType<NonNullable<Overload["prepare"]>>>,
  evaluate: Evaluator,
  others: readonly Evaluator[],
): Evaluator {
  return (activation, slots) => {
    const first = evaluate(activation, slots);
    if (first instanceof Failure) return first;
    const rest: CelValue[] = [];
    for (const other of others) {
      const value = other(activation, slots);
      if (value instanceof Failure) return value;
      rest.push(value);
    }
    const kinds = [first, constant, ...rest].map(kindOf);
    return kinds.every((kind, index) => kind === params[index]?.name)
      ? placed(run(first, ...rest), node.at)
      : noOverload(node, kinds);
  };
}

function prepare(
  make: NonNullable<Overload["prepare"]>,
  constant: CelValue,
  text: string,
  at: number,
): ReturnType<typeof make> {
  try {
    return make(constant);
  } catch (cause) {
    throw new CelError(messageOf(cause), text, at, cause);
  }
}

function direct({ at }: Call, { run }: Overload, evaluators: readonly Evaluator[]): Evaluator {
  const [first, second] = evaluators;
  if (first === undefined) return () => placed(run(), at);
  if (second === undefined)
    return (activation, slots) => {
      const value = first(activation, slots);
      return value instanceof Failure ? value : placed(run(value), at);
    };
  if (evaluators.length === 2)
    return (activation, slots) => {
      const a = first(activation, slots);
      if (a instanceof Failure) return a;
      const b = second(activation, slots);
      return b instanceof Failure ? b : placed(run(a, b), at);
    };
  return (activation, slots) => {
    const values: CelValue[] = [];
    for (const evaluate of evaluators) {
      const value = evaluate(activation, slots);
      if (value instanceof Failure) return value;
      values.push(value);
    }
    return placed(run(...values), at);
  };
}

/** The kinds of values that an overload accepts; undefined accepts any. */
interface Choice {
  readonly overload: Overload;
  readonly kinds: readonly (string | undefined)[];
}

/** Chooses the overload at run time, by the values. */
function dispatch(node: Call, overloads: readonly Overload[], evaluators: readonly Evaluator[]): Evaluator {
  const choices = overloads.map((overload) => ({ overload, kinds: kindsOf(overload, evaluators.length) }));
  const [first, second] = evaluators;
  if (first !== undefined && second !== undefined && evaluators.length === 2)
    return dispatchTwo(node, choices, first, second);
  return (activation, slots) => {
    const values: CelValue[] = [];
    for (const evaluate of evaluators) {
      const value = evaluate(activation, slots);
      if (value instanceof Failure) return value;
      values.push(value);
    }
    const found = values.map(kindOf);
    for (const { overload, kinds } of choices)
      if (
        kinds.length === found.length &&
        found.every((kind, index) => kinds[index] === undefined || kinds[index] === kind)
      )
        return placed(overload.run(...values), node.at);
    return noOverload(node, found);
  };
}

/** Most calls have two arguments, so these allocate no argument list. */
function dispatchTwo(node: Call, choices: readonly Choice[], first: Evaluator, second: Evaluator): Evaluator {
  const optional = node.name === "_[?_]";
  const isIndex = optional || node.name === "_[_]";
  return (activation, slots) => {
    const a = first(activation, slots);
    if (a instanceof Failure) return a;
    const b = second(activation, slots);
    if (b instanceof Failure) return b;
    if (optional && a === null) return CelOptional.NONE;
    const left = kindOf(a);
    const right = kindOf(b);
    // `list[1.0]` and `list[1u]` mean `list[1]`.
    const index = isIndex && (right === "uint" || right === "double") ? "int" : right;
    for (const { overload, kinds } of choices) {
      const [x, y] = kinds;
      if ((x === undefined || x === left) && (y === undefined || y === index))
        return placed(overload.run(a, b), node.at);
    }
    return noOverload(node, [left, right]);
  };
}

/** Absent variables are null, so a call that fails with null fails because of absence. */
function noOverload(node: Call, kinds: readonly string[]): Failure {
  const what = `no such overload: ${signOf(node.name, kinds) ?? `${node.name}(${kinds.join(", ")})`}`;
  return kinds.includes("null_type") ? missing(what, node.at) : new Failure(what, node.at);
}

function kindsOf({ params, variadic }: Overload, count: number): readonly (string | undefined)[] {
  const last = params.at(-1);
  const all =
    variadic === true && last !== undefined
      ? Array.from({ length: count }, (_, index) => params[index] ?? last)
      : params;
  return all.map((param) => (isAny(param) ? undefined : param.name));
}

/** Adds the position of the call to a failure without one. */
function placed(value: CelValue | Failure, at: number): CelValue | Failure {
  return value instanceof Failure ? value.placed(at) : value;
}

/** Steps of a call, besides those of the body. Calls must count, because functions that each call others twice act as loops. */
const CALL = 32;

/** Calls of functions that the configuration defines. Arguments are evaluated first, each once; an error of one is the value. */
function compileCustomCall(node: Call, { checked, compile }: Compilation): Evaluator | undefined {
  const call = checked.customCalls.get(node);
  if (call === undefined) return undefined;
  const { definition, args } = call;
  const evaluators = args.map(compile);
  const fixed = definition.params.length - (definition.variadic ? 1 : 0);
  const place = `in ${formatSignature(definition)}: `;
  return (activation, slots) => {
    charge(CALL);
    const frame: CelValue[] = [];
    for (const evaluate of evaluators) {
      const value = evaluate(activation, slots);
      if (value instanceof Failure) return value;
      frame.push(value);
    }
    if (definition.variadic) frame.push(frame.splice(fixed));
    const value = definition.run(activation, frame);
    // Positions inside the function's body mean nothing in this expression.
    return value instanceof Failure ? new Failure(place + value.what, node.at, value.absent) : value;
  };
}
