/** Static types, and how they unify. What only an evaluation can know is `dyn`. */
import { CelDuration, CelTimestamp, CelUint, type CelValue } from "../values/types.ts";

/** A static type. `fields` lists what can be selected of a record; type parameters of functions are `variable`. */
export interface Type {
  readonly name: string;
  readonly params: readonly Type[];
  readonly fields?: ReadonlyMap<string, Type>;
  readonly variable?: true;
}

const simple = (name: string): Type => ({ name, params: [] });

export const DYN = simple("dyn");
export const NULL = simple("null_type");
export const BOOL = simple("bool");
export const INT = simple("int");
export const UINT = simple("uint");
export const DOUBLE = simple("double");
export const STRING = simple("string");
export const BYTES = simple("bytes");
export const TIMESTAMP = simple("google.protobuf.Timestamp");
export const DURATION = simple("google.protobuf.Duration");
/** Type parameters for declarations of functions. */
export const A: Type = { name: "A", params: [], variable: true };
export const B: Type = { name: "B", params: [], variable: true };

export const opaque = simple;
export const list = (element: Type): Type => ({ name: "list", params: [element] });
export const map = (key: Type, value: Type): Type => ({ name: "map", params: [key, value] });
export const optional = (value: Type): Type => ({ name: "optional_type", params: [value] });
export const typeOf = (type: Type): Type => ({ name: "type", params: [type] });
export const record = (name: string, fields: Readonly<Record<string, Type>>): Type => ({
  name,
  params: [],
  fields: new Map(Object.entries(fields)),
});

/** As users write it: `map<string, list<int>>`. */
export function formatType(type: Type): string {
  if (type.variable === true) return "dyn";
  return type.params.length === 0 ? type.name : `${type.name}<${type.params.map(formatType).join(", ")}>`;
}

/** The bindings of type parameters in the calls checked so far. */
export class Substitution {
  readonly #bound = new Map<string, Type>();
  /** Log of bindings, so that a trial can be undone. */
  readonly #trail: (readonly [name: string, before: Type | undefined])[] = [];
  #next = 0;

  fresh(): Type {
    return { name: `_${this.#next++}`, params: [], variable: true };
  }

  /** A copy of a declared type in which each type parameter has become a fresh one of `names`. */
  instantiate(type: Type, names: Map<string, Type>): Type {
    if (type.variable === true) {
      const known = names.get(type.name) ?? this.fresh();
      names.set(type.name, known);
      return known;
    }
    if (type.params.length === 0) return type;
    return { ...type, params: type.params.map((param) => this.instantiate(param, names)) };
  }

  /** Whether `from` is assignable to `to`. Binds type parameters only if so. */
  assignAll(from: readonly Type[], to: readonly Type[]): boolean {
    const mark = this.mark();
    if (from.length === to.length && from.every((type, index) => this.#assign(type, to[index] ?? DYN))) return true;
    this.undo(mark);
    return false;
  }

  /** A position for `undo`. */
  mark(): number {
    return this.#trail.length;
  }

  /** Removes the bindings made since `mark`. */
  undo(mark: number): void {
    for (const [name, before] of this.#trail.splice(mark).reverse()) {
      if (before === undefined) this.#bound.delete(name);
      else this.#bound.set(name, before);
    }
  }

  #set(name: string, type: Type): void {
    this.#trail.push([name, this.#bound.get(name)]);
    this.#bound.set(name, type);
  }

  assign(from: Type, to: Type): boolean {
    return this.assignAll([from], [to]);
  }

  /** The type with all bindings applied. Unbound parameters remain if `keep`, otherwise they become dyn. */
  resolve(type: Type, keep = false): Type {
    if (type.variable === true) {
      const bound = this.#bound.get(type.name);
      if (bound !== undefined) return this.resolve(bound, keep);
      return keep ? type : DYN;
    }
    if (type.params.length === 0) return type;
    return { ...type, params: type.params.map((param) => this.resolve(param, keep)) };
  }

  /** The type of a list's elements: the more general of two assignable types, otherwise dyn. */
  join(a: Type | undefined, b: Type): Type {
    if (a === undefined) return b;
    if (this.assign(b, a)) return this.#moreGeneral(b, a);
    return DYN;
  }

  #assign(from: Type, to: Type): boolean {
    if (to.variable === true) return this.#bind(from, to);
    if (from.variable === true) return this.#bind(to, from);
    if (from.name === "dyn" || to.name === "dyn") return true;
    if (from.name === "null_type" && isNullable(to)) return true;
    if (to.name === "null_type" && isNullable(from)) return true;
    if (from.name !== to.name) return false;
    if (from.name === "type" || to.params.length === 0) return true;
    return to.params.every((param, index) => this.#assign(from.params[index] ?? DYN, param));
  }

  #bind(type: Type, variable: Type): boolean {
    if (type.variable === true && type.name === variable.name) return true;
    const bound = this.#bound.get(variable.name);
    if (bound === undefined) {
      if (this.#mentions(type, variable)) return false;
      this.#set(variable.name, type);
      return true;
    }
    if (!this.#assign(type, bound)) return false;
    const general = this.#moreGeneral(type, bound);
    if (!this.#mentions(general, variable)) this.#set(variable.name, general);
    return true;
  }

  #mentions(type: Type, variable: Type): boolean {
    if (type.variable === true) {
      if (type.name === variable.name) return true;
      const bound = this.#bound.get(type.name);
      return bound !== undefined && this.#mentions(bound, variable);
    }
    return type.params.some((param) => this.#mentions(param, variable));
  }

  #moreGeneral(a: Type, b: Type): Type {
    return this.#isAsGeneral(a, b) ? a : b;
  }

  #isAsGeneral(a: Type, b: Type): boolean {
    if (a.name === "dyn" || a.variable === true) return true;
    if (b.name === "dyn" || b.variable === true) return false;
    if (a.name === "null_type") return false;
    if (b.name === "null_type") return true;
    return a.name === b.name && a.params.every((param, index) => this.#isAsGeneral(param, b.params[index] ?? DYN));
  }
}

const VALUES = new Set(["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "dyn"]);

/** Types that null is assignable to: message-like ones, such as absent variables, timestamps and opaque types. */
function isNullable(type: Type): boolean {
  return type.variable !== true && !VALUES.has(type.name);
}

/** The type of a literal. */
export function typeOfConstant(value: CelValue): Type {
  switch (typeof value) {
    case "boolean":
      return BOOL;
    case "bigint":
      return INT;
    case "number":
      return DOUBLE;
    case "string":
      return STRING;
    default:
  }
  if (value === null) return NULL;
  if (value instanceof CelUint) return UINT;
  if (value instanceof Uint8Array) return BYTES;
  if (value instanceof CelTimestamp) return TIMESTAMP;
  return value instanceof CelDuration ? DURATION : DYN;
}

/** Names of types that are values of expressions, as in `type(x) == string`. */
export const TYPE_NAMES: ReadonlyMap<string, Type> = new Map([
  ["bool", BOOL],
  ["int", INT],
  ["uint", UINT],
  ["double", DOUBLE],
  ["string", STRING],
  ["bytes", BYTES],
  ["list", list(DYN)],
  ["map", map(DYN, DYN)],
  ["null_type", NULL],
  ["type", typeOf(DYN)],
  ["optional_type", optional(DYN)],
  ["google.protobuf.Timestamp", TIMESTAMP],
  ["google.protobuf.Duration", DURATION],
]);
