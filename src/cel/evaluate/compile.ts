/**
 * Turns a checked tree into closures, one for each node, so that an evaluation does not inspect the tree. No code is generated.
 * Failures are values (`Failure`), not exceptions: clients can cause them, and they must not cost a stack trace each.
 */
import type { Checked } from "../environment/environment.ts";
import type {
  Bind,
  Call,
  Fallback,
  Identifier,
  ListLiteral,
  MapLiteral,
  Node,
  OptionalMap,
  Select,
} from "../syntax/ast.ts";
import { kindOf } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { Failure, fail, worse } from "../values/failure.ts";
import { CelMap } from "../values/map.ts";
import { CelOptional, type CelValue } from "../values/types.ts";
import { compileCall } from "./calls.ts";
import { costOf } from "./cost.ts";
import type { Compilation, Evaluator } from "./evaluator.ts";
import { compileLoop } from "./loops.ts";
import { compileSelect } from "./selects.ts";

/** Compiles the parts of a checked expression. `watch` may replace the evaluator of each part by one that does the same. */
export function compilationOf(
  checked: Checked,
  text: string,
  watch?: (node: Node, run: Evaluator) => Evaluator,
): Compilation {
  const compile = (node: Node): Evaluator => {
    const run = compileKind(node, compilation);
    return watch === undefined ? run : watch(node, run);
  };
  const compilation: Compilation = { checked, text, compile, fuses: watch === undefined };
  return compilation;
}

/** Turns a checked expression into closures, and does once everything that does not depend on a request. */
export function compileNode(root: Node, checked: Checked, text: string): Evaluator {
  const compilation = compilationOf(checked, text);
  const run = compilation.compile(root);
  const cost = costOf(root);
  return (activation, slots) => {
    charge(cost);
    return run(activation, slots);
  };
}

function compileKind(node: Node, compilation: Compilation): Evaluator {
  switch (node.kind) {
    case "literal": {
      const { value } = node;
      return () => value;
    }
    case "identifier":
      return compileName(node, node.name, compilation);
    case "select":
      return compilation.checked.references.has(node)
        ? compileName(node, node.field, compilation)
        : compileSelect(node, compilation);
    case "call":
      return compilation.checked.references.has(node)
        ? compileName(node, node.name, compilation)
        : compileCall(node, compilation);
    case "list":
      return compileList(node, compilation);
    case "map":
      return compileMap(node, compilation);
    case "message":
      return constant(new Failure(`unknown message type ${node.name}`, node.at));
    case "loop":
      return compileLoop(node, compilation);
    case "bind":
      return compileBind(node, compilation);
    case "optionalMap":
      return compileOptionalMap(node, compilation);
    case "fallback":
      return compileFallback(node, compilation);
  }
}

function constant(value: CelValue | Failure): Evaluator {
  return () => value;
}

function compileName(node: Identifier | Select | Call, name: string, { checked }: Compilation): Evaluator {
  const reference = checked.references.get(node);
  if (reference === undefined) return constant(new Failure(`unknown variable ${name}`, node.at));
  switch (reference.kind) {
    case "type":
      return constant(reference.value);
    case "local": {
      const { slot } = reference;
      return (_, slots) => slots[slot] as CelValue;
    }
    case "variable": {
      const { read } = reference.variable;
      return (activation) => read(activation) ?? null;
    }
  }
}

function compileList({ elements }: ListLiteral, { compile }: Compilation): Evaluator {
  const parts = elements.map(({ value, optional }) => ({ evaluate: compile(value), optional, at: value.at }));
  return (activation, slots) => {
    charge(parts.length);
    const list: CelValue[] = [];
    for (const { evaluate, optional, at } of parts) {
      const value = evaluate(activation, slots);
      if (value instanceof Failure) return value;
      if (!optional) list.push(value);
      else if (!(value instanceof CelOptional))
        return new Failure(`after ? an optional is needed, not ${kindOf(value)}`, at);
      else if (value.value !== undefined) list.push(value.value);
    }
    return list;
  };
}

function compileMap({ entries, at }: MapLiteral, { compile }: Compilation): Evaluator {
  const parts = entries.map(({ key, value, optional }) => ({ key: compile(key), value: compile(value), optional }));
  return (activation, slots) => {
    charge(parts.length);
    const map = new CelMap();
    for (const part of parts) {
      const key = part.key(activation, slots);
      if (key instanceof Failure) return key;
      let value: CelValue | Failure | undefined = part.value(activation, slots);
      if (value instanceof Failure) return value;
      if (part.optional) {
        if (!(value instanceof CelOptional))
          return new Failure(`after ? an optional is needed, not ${kindOf(value)}`, at);
        value = value.value;
      }
      if (value !== undefined && !map.add(key, value))
        return new Failure(`a key of type ${kindOf(key)} cannot be used, or is a duplicate`, at);
    }
    return map;
  };
}

function compileBind(node: Bind, { compile, checked }: Compilation): Evaluator {
  const [value, body] = [compile(node.value), compile(node.body)];
  const slot = checked.slots.get(node) ?? 0;
  return (activation, slots) => {
    const bound = value(activation, slots);
    // A bound error is an error only where the name is used.
    slots[slot] = bound as CelValue;
    return body(activation, slots);
  };
}

function compileOptionalMap(node: OptionalMap, { compile, checked }: Compilation): Evaluator {
  const [operand, body] = [compile(node.operand), compile(node.body)];
  const slot = checked.slots.get(node) ?? 0;
  const { flat, at } = node;
  return (activation, slots) => {
    const optional = operand(activation, slots);
    if (optional instanceof Failure) return optional;
    if (!(optional instanceof CelOptional))
      return new Failure(`an optional is needed here, not ${kindOf(optional)}`, at);
    if (optional.value === undefined) return optional;
    slots[slot] = optional.value;
    const value = body(activation, slots);
    return value instanceof Failure || flat ? value : new CelOptional(value);
  };
}

/**
 * `default` continues if something is absent, `coalesce` after any failure (docs/expressions.md#when-a-condition-fails); both
 * after null.
 */
function compileFallback({ choices, onlyAbsent }: Fallback, { compile }: Compilation): Evaluator {
  const evaluators = choices.map(compile);
  return (activation, slots) => {
    let failure: Failure | undefined;
    let isNull = false;
    for (const evaluate of evaluators) {
      const value = evaluate(activation, slots);
      if (value === null) isNull = true;
      else if (!(value instanceof Failure)) return value;
      else if (value.needs !== undefined || (onlyAbsent && !value.absent)) return value;
      else failure = worse(failure, value);
    }
    return isNull ? null : (failure ?? fail("nothing to choose from"));
  };
}
