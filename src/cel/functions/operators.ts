/** Arithmetic, comparison, indexing and membership. */
import { fn, type Overload } from "../environment/overload.ts";
import {
  A,
  B,
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  INT,
  list,
  map,
  optional,
  STRING,
  TIMESTAMP,
  type Type,
  UINT,
} from "../environment/types.ts";
import { type AnyMap, adopt, isList, isMap, kindOf, mapGet } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { compare, equals } from "../values/equality.ts";
import { Failure, fail, missing } from "../values/failure.ts";
import { comparedAsText, comparing, repeatedField } from "../values/repeated.ts";
import { type CelDuration, CelOptional, type CelTimestamp, CelUint, type CelValue } from "../values/types.ts";
import { duration, timestamp } from "./times.ts";

const MAX_INT = 2n ** 63n - 1n;
const MIN_INT = -(2n ** 63n);
const MAX_UINT = 2n ** 64n - 1n;

/** An int, or a failure when it does not fit 64 bits. */
export function int(value: bigint): bigint | Failure {
  return value > MAX_INT || value < MIN_INT ? fail("integer overflow") : value;
}

/** A uint, or a failure when it is negative or does not fit 64 bits. */
export function uint(value: bigint): CelUint | Failure {
  return value > MAX_UINT || value < 0n ? fail("unsigned integer overflow") : new CelUint(value);
}

function integers(name: string, run: (a: bigint, b: bigint) => bigint, zero?: string): Overload[] {
  const guarded = (a: bigint, b: bigint, make: (value: bigint) => CelValue | Failure): CelValue | Failure =>
    b === 0n && zero !== undefined ? fail(zero) : make(run(a, b));
  return [
    fn(name, [INT, INT], INT, (a: bigint, b: bigint) => guarded(a, b, int)),
    fn(name, [UINT, UINT], UINT, (a: CelUint, b: CelUint) => guarded(a.value, b.value, uint)),
  ];
}

const doubles = (name: string, run: (a: number, b: number) => number): Overload =>
  fn(name, [DOUBLE, DOUBLE], DOUBLE, run);

const ARITHMETIC: readonly Overload[] = [
  ...integers("_+_", (a, b) => a + b),
  doubles("_+_", (a, b) => a + b),
  ...integers("_-_", (a, b) => a - b),
  doubles("_-_", (a, b) => a - b),
  ...integers("_*_", (a, b) => a * b),
  doubles("_*_", (a, b) => a * b),
  ...integers("_/_", (a, b) => a / b, "division by zero"),
  doubles("_/_", (a, b) => a / b),
  ...integers("_%_", (a, b) => a % b, "modulus by zero"),
  fn("-_", [INT], INT, (a: bigint) => int(-a)),
  fn("-_", [DOUBLE], DOUBLE, (a: number) => -a),
];

type Result = CelValue | Failure;

const lazy = (): Result => fail("operators that stop early are compiled, not called");

const ORDERED = [INT, UINT, DOUBLE];
const COMPARABLE: readonly (readonly [Type, Type])[] = [
  ...ORDERED.flatMap((a) => ORDERED.map((b) => [a, b] as const)),
  ...[BOOL, STRING, BYTES, TIMESTAMP, DURATION].map((type) => [type, type] as const),
];

function comparison(name: string, holds: (order: number) => boolean): Overload[] {
  const run = (a: CelValue, b: CelValue): boolean => {
    const order = compare(a, b);
    return order !== undefined && holds(order);
  };
  return COMPARABLE.map((params) => fn(name, params, BOOL, run));
}

/** `list[index]`; the index may be any number without a fraction. */
function at(list: readonly CelValue[], index: CelValue): Result {
  const number = index instanceof CelUint ? Number(index.value) : Number(index);
  if (!Number.isInteger(number)) return fail(`a list has no index ${String(index)}`);
  if (number < 0 || number >= list.length)
    return missing(`index ${number} is out of range: the list has ${list.length} elements`);
  return adopt(list[number]);
}

function byKey(map: AnyMap, key: CelValue): Result {
  const value = lookUp(map, key);
  return value === undefined ? missing(`no such key: ${describe(key)}`) : value;
}

/** `key in map` */
export function hasKey(map: AnyMap, key: CelValue): boolean | Failure {
  const value = lookUp(map, key);
  return value instanceof Failure ? value : value !== undefined;
}

/** Looking up a repeated field compares it with the keys, which fails. */
function lookUp(map: AnyMap, key: CelValue): Result | undefined {
  if (typeof key === "string") charge(key.length);
  const field = repeatedField(key);
  return field === undefined ? mapGet(map, key) : fail(comparedAsText(field));
}

function describe(key: CelValue): string {
  if (key instanceof CelUint) return `${key.value}u`;
  return typeof key === "object" ? kindOf(key) : String(key).slice(0, 100);
}

/** `container[?key]`: a missing key or index gives an empty optional. */
function optionally(container: CelValue, key: CelValue): Result {
  if (isList(container)) {
    const index = key instanceof CelUint ? Number(key.value) : Number(key);
    const inside = Number.isInteger(index) && index >= 0 && index < container.length;
    return inside ? new CelOptional(adopt(container[index])) : CelOptional.NONE;
  }
  if (container instanceof CelOptional)
    return container.value === undefined ? container : optionally(container.value, key);
  if (container === null) return CelOptional.NONE;
  if (!isMap(container)) return fail(`a value of type ${kindOf(container)} has no elements`);
  const value = lookUp(container, key);
  if (value instanceof Failure) return value;
  return value === undefined ? CelOptional.NONE : new CelOptional(value);
}

/** Steps for each element that is compared or copied, and of a buffer. */
const PER_ELEMENT = 16;
const PER_COPY = 4;
const PER_BUFFER = 512;

function inList(item: CelValue, items: readonly CelValue[]): boolean {
  charge(items.length * PER_ELEMENT);
  return items.some((candidate) => equals(item, adopt(candidate)));
}

function concatenate(a: Uint8Array, b: Uint8Array): Uint8Array {
  charge(PER_BUFFER + a.length + b.length);
  return Buffer.concat([a, b]);
}

/** Values of one type, any two numbers, and a text with bytes, which are never equal but often compared: `request.body == ""`. */
const COMPARABLE_TYPES: readonly (readonly [Type, Type])[] = [
  [A, A],
  ...ORDERED.flatMap((a) => ORDERED.filter((b) => b !== a).map((b) => [a, b] as const)),
  [STRING, BYTES],
  [BYTES, STRING],
];

const ALL: readonly Overload[] = [
  ...ARITHMETIC,
  fn("_&&_", [BOOL, BOOL], BOOL, lazy),
  fn("_||_", [BOOL, BOOL], BOOL, lazy),
  fn("_?_:_", [BOOL, A, A], A, lazy),
  fn("!_", [BOOL], BOOL, (value: boolean) => !value),
  ...COMPARABLE_TYPES.flatMap((params) => [
    fn("_==_", params, BOOL, comparing(equals)),
    fn(
      "_!=_",
      params,
      BOOL,
      comparing((a: CelValue, b: CelValue) => !equals(a, b)),
    ),
  ]),
  ...comparison("_<_", (order) => order < 0),
  ...comparison("_<=_", (order) => order <= 0),
  ...comparison("_>_", (order) => order > 0),
  ...comparison("_>=_", (order) => order >= 0),
  fn("_+_", [STRING, STRING], STRING, (a: string, b: string) => {
    charge(a.length + b.length);
    return a + b;
  }),
  fn("_+_", [BYTES, BYTES], BYTES, concatenate),
  fn("_+_", [list(A), list(A)], list(A), (a: readonly CelValue[], b: readonly CelValue[]) => {
    charge((a.length + b.length) * PER_COPY);
    return a.concat(b);
  }),
  fn("_+_", [DURATION, DURATION], DURATION, (a: CelDuration, b: CelDuration) => duration(a.nanos + b.nanos)),
  fn("_+_", [TIMESTAMP, DURATION], TIMESTAMP, (a: CelTimestamp, b: CelDuration) => timestamp(a.nanos + b.nanos)),
  fn("_+_", [DURATION, TIMESTAMP], TIMESTAMP, (a: CelDuration, b: CelTimestamp) => timestamp(a.nanos + b.nanos)),
  fn("_-_", [DURATION, DURATION], DURATION, (a: CelDuration, b: CelDuration) => duration(a.nanos - b.nanos)),
  fn("_-_", [TIMESTAMP, DURATION], TIMESTAMP, (a: CelTimestamp, b: CelDuration) => timestamp(a.nanos - b.nanos)),
  fn("_-_", [TIMESTAMP, TIMESTAMP], DURATION, (a: CelTimestamp, b: CelTimestamp) => duration(a.nanos - b.nanos)),
  fn("@in", [A, list(A)], BOOL, comparing(inList)),
  fn("@in", [A, map(A, B)], BOOL, (key: CelValue, container: AnyMap) => hasKey(container, key)),
  fn("_[_]", [list(A), INT], A, at),
  fn("_[_]", [map(A, B), A], B, byKey),
  fn("_[_]", [optional(list(A)), INT], optional(A), optionally),
  fn("_[_]", [optional(map(A, B)), A], optional(B), optionally),
  fn("_[?_]", [list(A), INT], optional(A), optionally),
  fn("_[?_]", [map(A, B), A], optional(B), optionally),
  fn("_[?_]", [optional(list(A)), INT], optional(A), optionally),
  fn("_[?_]", [optional(map(A, B)), A], optional(B), optionally),
];

/** The overloads of operators by their names in the tree. */
export const OPERATORS: Readonly<Record<string, readonly Overload[]>> = Object.assign(
  Object.create(null),
  Object.groupBy(ALL, ({ name }) => name),
);

/** An operator's use as it is written, with types for its operands; undefined for functions. */
export function signOf(name: string, types: readonly string[]): string | undefined {
  if (OPERATORS[name] === undefined) return undefined;
  const [a, b, c] = types;
  if (name === "@in") return `${a} in ${b}`;
  if (name === "_[_]" || name === "_[?_]") return `${a}[${b}]`;
  if (name === "_?_:_") return `${a} ? ${b} : ${c}`;
  const sign = name.replaceAll("_", "");
  return b === undefined ? `${sign}${a}` : `${a} ${sign} ${b}`;
}
