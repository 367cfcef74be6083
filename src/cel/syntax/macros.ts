/** Calls that are syntax: `has`, the loops, and optional values. They become nodes of their own. */
import type { Call, LoopKind, Node, Place } from "./ast.ts";
import { CelError } from "./cel-error.ts";

type Expand = (call: Call, target: Node, text: string) => Node | undefined;

/** Method-style macros by name. An expansion returns undefined if the number of arguments makes it an ordinary call. */
const MEMBER_MACROS: Readonly<Record<string, Expand>> = {
  all: predicate("all"),
  exists: predicate("exists"),
  exists_one: predicate("existsOne"),
  existsOne: predicate("existsOne"),
  filter: predicate("filter", 1),
  filterKeys: predicate("filterKeys", 1),
  mapValues: predicate("mapValues", 1),
  map: transform("map", 1),
  transformList: transform("transformList", 2),
  transformMap: transform("transformMap", 2),
  transformMapEntry: transform("transformMapEntry", 2),
  optMap: optionalMap(false),
  optFlatMap: optionalMap(true),
  with: (call, target, text) => {
    const [name, body] = call.args;
    if (call.args.length !== 2 || name === undefined || body === undefined) return undefined;
    return { kind: "bind", name: variable(name, text), value: target, body, ...placeOf(call) };
  },
};

const GLOBAL_MACROS = new Set(["has", "default", "coalesce", "cel"]);

/** The macros that expressions call by name. */
export const MACROS: readonly { readonly name: string; readonly member: boolean }[] = [
  ...["has", "default", "coalesce", "cel.bind"].map((name) => ({ name, member: false })),
  ...Object.keys(MEMBER_MACROS).map((name) => ({ name, member: true })),
];

/** Whether calls of this name are, or may be, macros. */
export function isMacro(name: string): boolean {
  return GLOBAL_MACROS.has(name) || Object.hasOwn(MEMBER_MACROS, name);
}

/** The expansion of a macro call, or undefined if the call is not one. Throws CelError for a misused macro. */
export function expandMacro(call: Call, text: string): Node | undefined {
  const { name, target, args } = call;
  if (target === undefined) {
    if (name === "has") return has(call, text);
    if ((name === "default" && args.length === 2) || (name === "coalesce" && args.length > 0))
      return { kind: "fallback", choices: args, onlyAbsent: name === "default", ...placeOf(call) };
    return undefined;
  }
  if (target.kind === "identifier" && target.name === "cel") return celMacro(call, text);
  return Object.hasOwn(MEMBER_MACROS, name) ? MEMBER_MACROS[name]?.(call, target, text) : undefined;
}

function has({ args, at, from, to }: Call, text: string): Node | undefined {
  const [operand] = args;
  if (args.length !== 1 || operand === undefined) return undefined;
  if (operand.kind !== "select" || operand.test) throw new CelError("has() needs a field, as in has(a.b)", text, at);
  return { ...operand, test: true, from, to };
}

function celMacro(call: Call, text: string): Node | undefined {
  const { name, args } = call;
  const place = placeOf(call);
  const [first, second, third] = args;
  if (first === undefined) return undefined;
  if (name === "bind" && args.length === 3 && second !== undefined && third !== undefined)
    return { kind: "bind", name: variable(first, text), value: second, body: third, ...place };
  if (name === "block" && args.length === 2 && first.kind === "list" && second !== undefined) {
    return first.elements.reduceRight<Node>(
      (body, { value }, index) => ({ kind: "bind", name: `@index${index}`, value, body, ...place }),
      second,
    );
  }
  if (name === "index" && args.length === 1)
    return { kind: "identifier", name: `@index${number(first)}`, absolute: false, ...place };
  if ((name === "iterVar" || name === "accuVar") && args.length === 2 && second !== undefined)
    return { kind: "identifier", name: `@${name}${number(first)}_${number(second)}`, absolute: false, ...place };
  return undefined;
}

function placeOf({ at, from, to }: Call): Place {
  return { at, from, to };
}

function number(node: Node): string {
  return node.kind === "literal" ? String(node.value) : "";
}

/** `range.loop(x, body)`, and `range.loop(i, x, body)` unless there is one variable only. */
function predicate(loop: LoopKind, variables = 2): Expand {
  return (call, range, text) => {
    const { args, at } = call;
    const body = args.at(-1);
    if (body === undefined || args.length < 2 || args.length > variables + 1) return undefined;
    const names = args.slice(0, -1).map((node) => variable(node, text));
    return {
      kind: "loop",
      loop,
      range,
      variables: distinct(names, at, text),
      filter: undefined,
      body,
      ...placeOf(call),
    };
  };
}

/** `range.loop(x, body)` or `range.loop(x, filter, body)`, with the given number of variables. */
function transform(loop: LoopKind, variables: number): Expand {
  return (call, range, text) => {
    const { args, at } = call;
    const body = args.at(-1);
    if (body === undefined || args.length < variables + 1 || args.length > variables + 2) return undefined;
    const names = args.slice(0, variables).map((node) => variable(node, text));
    const filter = args.length === variables + 2 ? args[variables] : undefined;
    return { kind: "loop", loop, range, variables: distinct(names, at, text), filter, body, ...placeOf(call) };
  };
}

function optionalMap(flat: boolean): Expand {
  return (call, operand, text) => {
    const { args } = call;
    const [name, body] = args;
    if (args.length !== 2 || name === undefined || body === undefined) return undefined;
    return { kind: "optionalMap", operand, name: variable(name, text), body, flat, ...placeOf(call) };
  };
}

function variable(node: Node, text: string): string {
  if (node.kind === "identifier" && !node.absolute) return node.name;
  throw new CelError("here a plain name for the variable is needed", text, node.at);
}

function distinct(names: readonly string[], at: number, text: string): readonly string[] {
  if (new Set(names).size !== names.length) throw new CelError("the two variables need different names", text, at);
  return names;
}
