/** Functions of lists, sets, maps and optional values. */
import { both, fn, method, type Overload } from "../environment/overload.ts";
import { A, B, BOOL, DYN, INT, list, map, optional, STRING } from "../environment/types.ts";
import { type AnyMap, adopt, isList, isMap, mapGet, mapKeys, mapSize } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { toText } from "../values/convert.ts";
import { compare, equals } from "../values/equality.ts";
import { type Failure, fail, missing } from "../values/failure.ts";
import { CelMap } from "../values/map.ts";
import { checkComparable, comparing } from "../values/repeated.ts";
import { type CelList, CelOptional, CelUint, type CelValue } from "../values/types.ts";
import { hasKey } from "./operators.ts";

/** Steps for each element that is read, and for each one that becomes part of a new value. */
const PER_ELEMENT = 16;
const PER_ENTRY = 128;

function contains(items: CelList, wanted: CelValue): boolean {
  charge(items.length * PER_ELEMENT);
  return items.some((item) => equals(adopt(item), wanted));
}

/** With a repeated field it is ambiguous whether a list or, as in `contains("part")`, a text is meant. */
function listOrText(items: CelList, wanted: CelValue): boolean {
  checkComparable(wanted, items);
  return contains(items, wanted);
}

const containsAll = (items: CelList, wanted: CelList): boolean => wanted.every((item) => contains(items, adopt(item)));
const containsAny = (items: CelList, wanted: CelList): boolean => items.some((item) => contains(wanted, adopt(item)));
const isSameSet = (a: CelList, b: CelList): boolean => containsAll(a, b) && containsAll(b, a);

function slice(items: CelList, from: bigint, to: bigint): CelValue | Failure {
  if (from < 0n || to < from || to > BigInt(items.length))
    return fail(`cannot slice ${items.length} elements from ${from} to ${to}`);
  charge(Number(to - from));
  return items.slice(Number(from), Number(to));
}

function flatten(items: CelList, depth = 1n): CelValue | Failure {
  if (depth < 0n) return fail("the depth of flatten is negative");
  const flat: CelValue[] = [];
  const add = (list: CelList, left: bigint): void => {
    charge(PER_ELEMENT + list.length * PER_ELEMENT);
    for (const item of list) {
      const value = adopt(item);
      if (left > 0n && isList(value)) add(value, left - 1n);
      else flat.push(value);
    }
  };
  add(items, depth);
  return flat;
}

/** In ascending order; elements must be of one kind that has an order. */
function sort(items: CelList): CelValue | Failure {
  charge(items.length * PER_ELEMENT * (4 + Math.ceil(4 * Math.log2(items.length + 1))));
  const values = items.map(adopt);
  const [first] = values;
  if (
    first !== undefined &&
    values.some((value) => compare(first, value) === undefined || typeof value !== typeof first)
  )
    return fail("sort needs elements of one type that has an order");
  return values.sort((a, b) => compare(a, b) ?? 0);
}

function distinct(items: CelList): CelValue {
  const unique: CelValue[] = [];
  for (const item of items) {
    charge(PER_ELEMENT);
    if (!contains(unique, adopt(item))) unique.push(adopt(item));
  }
  return unique;
}

function range(count: bigint): CelValue | Failure {
  if (count < 0n || count > 1_000_000n) return fail("lists.range goes from 0 to 1000000");
  charge(Number(count) * PER_ELEMENT * 4);
  return Array.from({ length: Number(count) }, (_, index) => BigInt(index));
}

const elementAt = (items: CelList, index: number): CelValue => {
  const inside = items.length > 0;
  return inside ? new CelOptional(adopt(items.at(index))) : CelOptional.NONE;
};

/** The entries of both maps; for a key of both, the second wins. */
function merge(a: AnyMap, b: AnyMap): CelValue {
  const merged = new CelMap();
  for (const source of [b, a]) {
    for (const key of mapKeys(source)) {
      charge(PER_ENTRY);
      merged.add(key, mapGet(source, key) ?? null);
    }
  }
  return merged;
}

/** Nested maps and lists as one map with names such as `a.b` and `a.0`, down to `levels`. */
function flattenMap(value: AnyMap | CelList, levels: number): CelValue {
  const flat = new CelMap();
  const visit = (item: CelValue, name: string, level: number): void => {
    charge(PER_ENTRY);
    const keys = isList(item) ? item.map((_, index) => BigInt(index)) : isMap(item) ? mapKeys(item) : undefined;
    if (keys === undefined || level > levels) {
      flat.add(name, item);
      return;
    }
    for (const key of keys) {
      const child = isList(item) ? adopt(item[Number(key)]) : isMap(item) ? mapGet(item, key) : undefined;
      const path = name === "" ? (toText(key) ?? "") : `${name}.${toText(key)}`;
      charge(path.length);
      visit(child ?? null, path, level + 1);
    }
  };
  visit(value, "", 0);
  return flat;
}

/** The extensions `lists` and `sets`, and the gateway's functions for maps. */
export const COLLECTIONS: readonly Overload[] = [
  method("contains", [list(A), A], BOOL, comparing(listOrText)),
  method("contains", [map(A, B), A], BOOL, hasKey),
  method("slice", [list(A), INT, INT], list(A), slice),
  method("flatten", [list(DYN)], list(DYN), flatten),
  method("flatten", [list(DYN), INT], list(DYN), flatten),
  method("sort", [list(A)], list(A), sort),
  method("distinct", [list(A)], list(A), comparing(distinct)),
  method("reverse", [list(A)], list(A), (items: CelList) => {
    charge(items.length * PER_ELEMENT);
    return items.map(adopt).reverse();
  }),
  method("first", [list(A)], optional(A), (items: CelList) => elementAt(items, 0)),
  method("last", [list(A)], optional(A), (items: CelList) => elementAt(items, -1)),
  fn("lists.range", [INT], list(INT), range),
  fn("sets.contains", [list(A), list(A)], BOOL, comparing(containsAll)),
  fn("sets.equivalent", [list(A), list(A)], BOOL, comparing(isSameSet)),
  fn("sets.intersects", [list(A), list(A)], BOOL, comparing(containsAny)),
  ...both("merge", [map(A, B), map(A, B)], map(A, B), merge),
  fn("flatten", [map(A, B)], map(STRING, DYN), (value: AnyMap) => flattenMap(value, 1)),
  fn("flatten", [list(A)], map(STRING, DYN), (value: CelList) => flattenMap(value, 1)),
  fn("flattenRecursive", [map(A, B)], map(STRING, DYN), (value: AnyMap) => flattenMap(value, Number.POSITIVE_INFINITY)),
  fn("flattenRecursive", [list(A)], map(STRING, DYN), (value: CelList) => flattenMap(value, Number.POSITIVE_INFINITY)),
];

/** Whether a value is the zero of its type: what `optional.ofNonZeroValue` makes none. */
function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === "" || value === 0 || value === 0n) return true;
  if (value instanceof CelUint) return value.value === 0n;
  if (value instanceof Uint8Array || isList(value)) return value.length === 0;
  return isMap(value) && mapSize(value) === 0;
}

/** Optional values: presence without null. `or` and `orValue` are compiled, so that they can stop early. */
export const OPTIONALS: readonly Overload[] = [
  fn("optional.of", [A], optional(A), (value: CelValue) => new CelOptional(value)),
  fn("optional.none", [], optional(A), () => CelOptional.NONE),
  fn("optional.ofNonZeroValue", [A], optional(A), (value: CelValue) =>
    isZero(value) ? CelOptional.NONE : new CelOptional(value),
  ),
  fn("optional.unwrap", [list(optional(A))], list(A), unwrap),
  method("unwrapOpt", [list(optional(A))], list(A), unwrap),
  method("hasValue", [optional(A)], BOOL, ({ value }: CelOptional) => value !== undefined),
  method("value", [optional(A)], A, ({ value }: CelOptional) =>
    value === undefined ? missing("optional.none() has no value") : value,
  ),
  method("or", [optional(A), optional(A)], optional(A), (a: CelOptional, b: CelOptional) =>
    a.value === undefined ? b : a,
  ),
  method("orValue", [optional(A), A], A, ({ value }: CelOptional, other: CelValue) =>
    value === undefined ? other : value,
  ),
];

/** The values of the optionals that have one. */
function unwrap(items: CelList): CelValue {
  charge(items.length * PER_ELEMENT);
  const values: CelValue[] = [];
  for (const item of items) {
    const value = adopt(item);
    if (value instanceof CelOptional && value.value !== undefined) values.push(value.value);
  }
  return values;
}
