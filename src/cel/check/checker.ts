import type { Activation } from "../activation.ts";
import { CelError } from "../cel-error.ts";
import { OPERATORS } from "../functions/operators.ts";
import type { Overload } from "../functions/overload.ts";
import type { Bind, Call, Identifier, Loop, Node, OptionalMap, Select } from "../syntax/ast.ts";
import { nameOf } from "../syntax/names.ts";
import { CelMap } from "../values/map.ts";
import { CelType, type CelValue } from "../values/types.ts";
import type { Checked, Reference, ResolvedCall } from "./checked.ts";
import { typeOfConstant } from "./constants.ts";
import { candidates, type Environment } from "./environment.ts";
import { mismatch, resolveOverloads } from "./overloads.ts";
import { hint } from "./suggest.ts";
import { TYPE_NAMES } from "./type-names.ts";
import { BOOL, DYN, formatType, INT, list, map, optional, STRING, Substitution, type Type, typeOf } from "./types.ts";

/** Loops in loops multiply; the budget would stop them, but nobody means more than these. */
const MAX_NESTED_LOOPS = 3;

interface Local {
  readonly name: string;
  readonly slot: number;
  readonly type: Type;
}

/** Finds what every name means and every part's type. Throws CelError for what is unknown or does not fit. */
export function check(root: Node, text: string, environment: Environment): Checked {
  return new Checker(text, environment).run(root);
}

class Checker {
  readonly #text: string;
  readonly #environment: Environment;
  readonly #types = new Map<Node, Type>();
  readonly #references = new Map<Node, Reference>();
  readonly #calls = new Map<Call, ResolvedCall>();
  readonly #slots = new Map<Node, number>();
  readonly #substitution = new Substitution();
  readonly #locals: Local[] = [];
  #slotCount = 0;
  #loops = 0;

  constructor(text: string, environment: Environment) {
    this.#text = text;
    this.#environment = environment;
  }

  run(root: Node): Checked {
    this.#check(root);
    const types = new Map([...this.#types].map(([node, type]) => [node, this.#substitution.resolve(type)]));
    return {
      type: types.get(root) ?? DYN,
      types,
      references: this.#references,
      calls: this.#calls,
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
    const names = [...this.#environment.variables.keys(), ...this.#locals.map((local) => local.name)];
    return this.#fail(`unknown variable ${node.name}${hint(node.name, names)}`, node.at);
  }

  /** The type of the variable or type called `name`, noted as what `node` refers to; undefined when there is none. */
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
        `${operand.name} has no field ${node.field}${hint(node.field, operand.fields.keys())}`,
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
    if (target === undefined && name === "variables" && args.length === 0) return this.#allVariables(node);
    const qualified = target === undefined ? name : this.#qualified(target, name);
    const plain = qualified === undefined ? [] : this.#functions(qualified).filter((overload) => !overload.member);
    if (plain.length > 0) {
      for (const arg of args) this.#check(arg);
      return this.#resolve(node, plain, args);
    }
    const methods = target === undefined ? [] : this.#functions(name).filter((overload) => overload.member);
    if (target !== undefined && !this.#isPrefix(target)) this.#check(target);
    for (const arg of args) this.#check(arg);
    if (target !== undefined && methods.length > 0) return this.#resolve(node, methods, [target, ...args]);
    const isPrefix = target !== undefined && this.#isPrefix(target);
    const wanted = isPrefix ? (qualified ?? name) : name;
    const member = target !== undefined && !isPrefix;
    const known = [...this.#environment.functions].filter(([, list]) => list.some((item) => item.member === member));
    const names = known.map(([other]) => other);
    return this.#fail(`unknown function ${wanted}${hint(wanted, names)}`, node.at);
  }

  /** `variables()`: what the expression can name, and has now, as one map. */
  #allVariables(node: Call): Type {
    const type = map(STRING, DYN);
    const { variables } = this.#environment;
    const read = (activation: Activation): CelValue => {
      const all = new CelMap();
      for (const [name, variable] of variables) {
        const value = variable.read(activation);
        if (value !== undefined) all.add(name, value);
      }
      return all;
    };
    this.#references.set(node, { kind: "variable", name: "variables", variable: { type, read } });
    return type;
  }

  /** Whether a name is nothing but the first part of functions' names, as `base64` is. */
  #isPrefix(target: Node): boolean {
    const name = nameOf(target);
    if (name === undefined || this.#environment.variables.has(name) || TYPE_NAMES.has(name)) return false;
    if (this.#locals.some((local) => local.name === name)) return false;
    return [...this.#environment.functions.keys()].some((known) => known.startsWith(`${name}.`));
  }

  #qualified(target: Node, name: string): string | undefined {
    const prefix = nameOf(target);
    return prefix === undefined || this.#locals.some((local) => local.name === prefix)
      ? undefined
      : `${prefix}.${name}`;
  }

  #functions(name: string): readonly Overload[] {
    for (const candidate of candidates(name, this.#environment.container)) {
      const overloads = this.#environment.functions.get(candidate);
      if (overloads !== undefined) return overloads;
    }
    return [];
  }

  #resolve(node: Call, overloads: readonly Overload[], args: readonly Node[]): Type {
    const types = args.map((arg) => this.#substitution.resolve(this.#types.get(arg) ?? DYN, true));
    const found = resolveOverloads(overloads, types, this.#substitution);
    if (found !== undefined) {
      this.#calls.set(node, { overloads: found.fitting, args });
      return found.result;
    }
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
    if (++this.#loops > MAX_NESTED_LOOPS)
      throw new CelError(`more than ${MAX_NESTED_LOOPS} loops inside each other`, this.#text, node.at);
    const [first, second] = this.#loopTypes(range, node);
    const { loop } = node;
    const values =
      loop === "mapValues"
        ? [second]
        : node.variables.length === 1
          ? [range.name === "list" ? second : first]
          : [first, second];
    const type = this.#within(node, node.variables, values, () => {
      if (node.filter !== undefined) this.#expectBool(node.filter);
      switch (loop) {
        case "all":
        case "exists":
        case "existsOne":
          this.#expectBool(node.body);
          return BOOL;
        case "filter":
          this.#expectBool(node.body);
          return list(values[0] ?? DYN);
        case "filterKeys":
          this.#expectBool(node.body);
          return map(first, second);
        case "map":
        case "transformList":
          return list(this.#check(node.body));
        case "mapValues":
        case "transformMap":
          return map(first, this.#check(node.body));
        case "transformMapEntry": {
          const entry = this.#substitution.resolve(this.#check(node.body), true);
          if (entry.name === "map") return entry;
          return entry.name === "dyn"
            ? map(DYN, DYN)
            : this.#fail("transformMapEntry needs a map with one entry", node.body.at);
        }
      }
    });
    this.#loops--;
    return type;
  }

  /** Index and element of lists, key and value of maps. */
  #loopTypes(range: Type, node: Loop): [Type, Type] {
    const isMap = range.name === "map" && range.params.length === 2;
    if (isMap) return [range.params[0] ?? DYN, range.params[1] ?? DYN];
    const onlyMaps = node.loop === "mapValues" || node.loop === "filterKeys";
    if (range.name === "list" && !onlyMaps) return [INT, range.params[0] ?? DYN];
    if (range.fields !== undefined) return [STRING, DYN];
    if (range.name !== "dyn" && range.variable !== true)
      this.#fail(`${node.loop} needs a ${onlyMaps ? "map" : "list or map"}, not ${formatType(range)}`, node.range.at);
    return [DYN, DYN];
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
