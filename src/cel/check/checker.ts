/**
 * The type checker (cel-spec, "Gradual type checking"): resolves names, overloads and types before an expression is ever
 * evaluated, so that a misspelt field is an error of the configuration, not of a request. `dyn` is checked at run time.
 */
import { definitionFor } from "../environment/custom-function.ts";
import {
  type Checked,
  type CustomCall,
  candidates,
  type Environment,
  everyVariable,
  isNamespace,
  overloadsOf,
  type Reference,
  type ResolvedCall,
} from "../environment/environment.ts";
import type { Overload } from "../environment/overload.ts";
import {
  BOOL,
  DYN,
  formatType,
  list,
  map,
  optional,
  STRING,
  Substitution,
  TYPE_NAMES,
  type Type,
  typeOf,
  typeOfConstant,
} from "../environment/types.ts";
import { OPERATORS } from "../functions/operators.ts";
import {
  type Bind,
  type Call,
  type Identifier,
  type Loop,
  type Node,
  nameOf,
  type OptionalMap,
  type Select,
} from "../syntax/ast.ts";
import { CelError, UnknownVariableError } from "../syntax/cel-error.ts";
import { CelType } from "../values/types.ts";
import { isPredicate, loopResult, loopTypes } from "./loop-types.ts";
import { mismatch, resolveOverloads } from "./overloads.ts";
import { dashedHeader, hint, missingVariable, unknownFunction, wrongArguments } from "./unknown-names.ts";

/** The cost of nested loops multiplies. The budget would stop deeper ones; they are rejected as a mistake. */
const MAX_NESTED_LOOPS = 3;

interface Local {
  readonly name: string;
  readonly slot: number;
  readonly type: Type;
}

/**
 * Resolves every name and infers every type. Throws CelError for unknown names and type mismatches. `params` take the first
 * slots of the frame.
 */
export function check(
  root: Node,
  text: string,
  environment: Environment,
  params: readonly { readonly name: string; readonly type: Type }[] = [],
): Checked {
  return new Checker(text, environment, params).run(root);
}

class Checker {
  readonly #text: string;
  readonly #environment: Environment;
  readonly #types = new Map<Node, Type>();
  readonly #references = new Map<Node, Reference>();
  readonly #calls = new Map<Call, ResolvedCall>();
  readonly #customCalls = new Map<Call, CustomCall>();
  readonly #slots = new Map<Node, number>();
  readonly #substitution = new Substitution();
  readonly #locals: Local[];
  #slotCount: number;
  #loops = 0;
  #mostLoops = 0;

  constructor(
    text: string,
    environment: Environment,
    params: readonly { readonly name: string; readonly type: Type }[],
  ) {
    this.#text = text;
    this.#environment = environment;
    this.#locals = params.map((param, slot) => ({ ...param, slot }));
    this.#slotCount = params.length;
  }

  run(root: Node): Checked {
    this.#check(root);
    const types = new Map([...this.#types].map(([node, type]) => [node, this.#substitution.resolve(type)]));
    return {
      type: types.get(root) ?? DYN,
      types,
      references: this.#references,
      calls: this.#calls,
      customCalls: this.#customCalls,
      loops: this.#mostLoops,
      slots: this.#slots,
      slotCount: this.#slotCount,
    };
  }

  #check(node: Node): Type {
    const type = this.#typeOf(node);
    this.#types.set(node, type);
    return type;
  }

  #typeOf(node: Node): Type {
    switch (node.kind) {
      case "literal":
        return typeOfConstant(node.value);
      case "identifier":
        return this.#identifier(node);
      case "select":
        return this.#select(node);
      case "call":
        return this.#call(node);
      case "list":
        return this.#list(node.elements);
      case "map":
        return this.#map(node.entries);
      case "message":
        return this.#fail(`unknown message type ${node.name}; write a map, as in {"field": value}`, node.at);
      case "loop":
        return this.#loop(node);
      case "bind":
        return this.#bind(node);
      case "optionalMap":
        return this.#optionalMap(node);
      case "fallback": {
        const types = node.choices.map((choice) => this.#check(choice));
        return (
          types.reduce<Type | undefined>((joined, type) => this.#substitution.join(joined, type), undefined) ?? DYN
        );
      }
    }
  }

  #identifier(node: Identifier): Type {
    const found = this.#lookUp(node, node.absolute ? `.${node.name}` : node.name);
    if (found !== undefined) return found;
    if (this.#environment.lenient) return DYN;
    const names = [...this.#environment.variables.keys(), ...this.#locals.map((local) => local.name)];
    const help = dashedHeader(this.#text, node.name, node.at) ?? hint(node.name, names);
    throw new UnknownVariableError(node.name, help, this.#text, node.at);
  }

  /** The type of the variable or type called `name`, recorded as the reference of `node`; undefined for an unknown name. */
  #lookUp(node: Node, name: string): Type | undefined {
    const local = this.#locals.findLast((candidate) => candidate.name === name);
    if (local !== undefined) {
      this.#references.set(node, { kind: "local", slot: local.slot });
      return local.type;
    }
    for (const candidate of candidates(name, this.#environment.container)) {
      const variable = this.#environment.variables.get(candidate);
      if (variable !== undefined) {
        this.#references.set(node, { kind: "variable", name: candidate, variable });
        return variable.type;
      }
      const type = TYPE_NAMES.get(candidate);
      if (type === undefined) continue;
      this.#references.set(node, { kind: "type", value: new CelType(candidate) });
      return typeOf(type);
    }
    return undefined;
  }

  #select(node: Select): Type {
    const name = nameOf(node);
    const first = name?.split(".", 1)[0];
    if (name !== undefined && !this.#locals.some((local) => local.name === first)) {
      const found = this.#lookUp(node, name);
      if (found !== undefined) return found;
    }
    const operand = this.#substitution.resolve(this.#check(node.operand), true);
    const field = this.#field(operand, node);
    if (node.test) return BOOL;
    if (node.optional) return optional(field.name === "optional_type" ? (field.params[0] ?? DYN) : field);
    return field;
  }

  #field(operand: Type, node: Select): Type {
    if (operand.fields !== undefined) {
      const field = operand.fields.get(node.field);
      if (field !== undefined) return field;
      return this.#fail(
        `${operand.name} has no field ${node.field}${hint(node.field, operand.fields.keys()).help}`,
        node.at,
      );
    }
    if (operand.name === "map") {
      this.#substitution.assign(STRING, operand.params[0] ?? DYN);
      return operand.params[1] ?? DYN;
    }
    if (operand.name === "optional_type")
      return optional(this.#field(this.#substitution.resolve(operand.params[0] ?? DYN, true), node));
    if (operand.variable === true || operand.name === "dyn") {
      this.#substitution.assign(operand, DYN);
      return DYN;
    }
    return this.#fail(`a value of type ${formatType(operand)} has no fields, so no ${node.field}`, node.at);
  }

  #call(node: Call): Type {
    const { name, target, args } = node;
    const operator = OPERATORS[name];
    if (operator !== undefined) {
      for (const arg of args) this.#check(arg);
      return this.#resolve(node, operator, args);
    }
    const custom = this.#customCall(node);
    if (custom !== undefined) return custom;
    if (target === undefined && name === "variables" && args.length === 0) return this.#allVariables(node);
    const qualified = target === undefined ? name : this.#qualified(target, name);
    const plain = qualified === undefined ? [] : overloadsOf(qualified, this.#environment).filter((it) => !it.member);
    if (plain.length > 0) {
      for (const arg of args) this.#check(arg);
      return this.#resolve(node, plain, args);
    }
    const methods = target === undefined ? [] : overloadsOf(name, this.#environment).filter(({ member }) => member);
    if (target !== undefined && !this.#isPrefix(target)) this.#check(target);
    for (const arg of args) this.#check(arg);
    if (target !== undefined && methods.length > 0) return this.#resolve(node, methods, [target, ...args]);
    const isPrefix = target !== undefined && this.#isPrefix(target);
    const wanted = isPrefix ? (qualified ?? name) : name;
    return this.#fail(unknownFunction(wanted, target !== undefined && !isPrefix, this.#environment), node.at);
  }

  /** A call of a custom function; undefined if none has this name. */
  #customCall(node: Call): Type | undefined {
    const { target } = node;
    const name = node.name.replace(/^\./, "");
    const definitions = this.#environment.custom.get(name)?.filter(({ member }) => member === (target !== undefined));
    if (definitions === undefined || definitions.length === 0) return undefined;
    const args = target === undefined ? node.args : [target, ...node.args];
    const types = args.map((arg) => formatType(this.#substitution.resolve(this.#check(arg))));
    const definition = definitionFor(definitions, target !== undefined, args.length);
    if (definition === undefined) {
      const given = `${target === undefined ? "" : `${types.shift()}.`}${name}(${types.join(", ")})`;
      return this.#fail(wrongArguments(name, definitions, given), node.at);
    }
    const missing = missingVariable(definition, this.#environment);
    if (missing !== undefined) return this.#fail(missing, node.at);
    this.#enterLoops(definition.loops, node);
    this.#loops -= definition.loops;
    this.#customCalls.set(node, { definition, args });
    return definition.type;
  }

  /** `variables()`: all variables in scope that are present, as one map. */
  #allVariables(node: Call): Type {
    const variable = everyVariable(this.#environment.variables);
    this.#references.set(node, { kind: "variable", name: "variables", variable });
    return variable.type;
  }

  /** Whether a name is only a namespace of functions, as `base64` is. */
  #isPrefix(target: Node): boolean {
    const name = nameOf(target);
    if (name === undefined || this.#environment.variables.has(name) || TYPE_NAMES.has(name)) return false;
    if (this.#locals.some((local) => local.name === name)) return false;
    return isNamespace(name, this.#environment);
  }

  #qualified(target: Node, name: string): string | undefined {
    const prefix = nameOf(target);
    return prefix === undefined || this.#locals.some((local) => local.name === prefix)
      ? undefined
      : `${prefix}.${name}`;
  }

  #resolve(node: Call, overloads: readonly Overload[], args: readonly Node[]): Type {
    const types = args.map((arg) => this.#substitution.resolve(this.#types.get(arg) ?? DYN, true));
    const found = resolveOverloads(overloads, types, this.#substitution);
    if (found !== undefined) {
      this.#calls.set(node, { overloads: found.fitting, args });
      return found.result;
    }
    // The branches differ in type; the condition decides which type the result has.
    const [condition] = types;
    if (node.name === "_?_:_" && condition !== undefined && this.#substitution.assign(condition, BOOL)) return DYN;
    this.#calls.set(node, { overloads: overloads.filter(({ params }) => params.length === args.length), args });
    return this.#fail(mismatch(node, overloads, types), node.at);
  }

  #list(elements: readonly { readonly value: Node; readonly optional: boolean }[]): Type {
    let joined: Type | undefined;
    for (const { value, optional: isOptional } of elements)
      joined = this.#substitution.join(joined, this.#element(this.#check(value), isOptional, value.at));
    return list(joined ?? this.#substitution.fresh());
  }

  #map(entries: readonly { readonly key: Node; readonly value: Node; readonly optional: boolean }[]): Type {
    let keys: Type | undefined;
    let values: Type | undefined;
    for (const entry of entries) {
      keys = this.#substitution.join(keys, this.#check(entry.key));
      const value = this.#element(this.#check(entry.value), entry.optional, entry.value.at);
      values = this.#substitution.join(values, value);
    }
    return map(keys ?? this.#substitution.fresh(), values ?? this.#substitution.fresh());
  }

  #element(type: Type, isOptional: boolean, at: number): Type {
    if (!isOptional) return type;
    const known = this.#substitution.resolve(type, true);
    if (known.name === "optional_type") return known.params[0] ?? DYN;
    return known.name === "dyn" ? DYN : this.#fail(`after ? an optional is needed, not ${formatType(known)}`, at);
  }

  #loop(node: Loop): Type {
    const range = this.#substitution.resolve(this.#check(node.range), true);
    this.#enterLoops(1, node);
    const types = loopTypes(node, range);
    if (types.problem !== undefined) this.#fail(types.problem, node.range.at);
    const type = this.#within(node, node.variables, types.variables, () => {
      if (node.filter !== undefined) this.#expectBool(node.filter);
      if (isPredicate(node)) this.#expectBool(node.body);
      const body = isPredicate(node) ? BOOL : this.#substitution.resolve(this.#check(node.body), true);
      return loopResult(node, types, body) ?? this.#fail(`${node.loop} needs a map with one entry`, node.body.at);
    });
    this.#loops--;
    return type;
  }

  #enterLoops(count: number, node: Node): void {
    this.#loops += count;
    this.#mostLoops = Math.max(this.#mostLoops, this.#loops);
    if (this.#loops > MAX_NESTED_LOOPS)
      throw new CelError(`more than ${MAX_NESTED_LOOPS} loops inside each other`, this.#text, node.at);
  }

  #bind(node: Bind): Type {
    const type = this.#check(node.value);
    return this.#within(node, [node.name], [type], () => this.#check(node.body));
  }

  #optionalMap(node: OptionalMap): Type {
    const operand = this.#substitution.resolve(this.#check(node.operand), true);
    if (operand.name !== "optional_type" && operand.name !== "dyn" && operand.variable !== true)
      this.#fail(`an optional is needed here, not ${formatType(operand)}`, node.operand.at);
    const value = operand.params[0] ?? DYN;
    const body = this.#within(node, [node.name], [value], () => this.#check(node.body));
    return node.flat ? body : optional(body);
  }

  #within<T>(node: Node, names: readonly string[], types: readonly Type[], inside: () => T): T {
    const slot = this.#slotCount;
    this.#slots.set(node, slot);
    this.#slotCount += Math.max(2, names.length);
    for (const [index, name] of names.entries())
      this.#locals.push({ name, slot: slot + index, type: types[index] ?? DYN });
    const result = inside();
    this.#locals.length -= names.length;
    return result;
  }

  #expectBool(node: Node): void {
    const type = this.#check(node);
    if (!this.#substitution.assign(type, BOOL))
      this.#fail(`true or false is needed here, not ${formatType(this.#substitution.resolve(type))}`, node.at);
  }

  #fail(what: string, at: number): Type {
    if (this.#environment.lenient) return DYN;
    throw new CelError(what, this.#text, at);
  }
}
