/** Equality and order of values. */
import { adopt, isList, isMap, kindOf, mapGet, mapKeys, mapSize } from "./access.ts";
import { charge } from "./budget.ts";
import { checkComparable } from "./repeated.ts";
import { CelDuration, CelOpaque, CelOptional, CelTimestamp, CelType, CelUint, type CelValue } from "./types.ts";

/**
 * `a == b`: numbers by their mathematical value whatever their types; values of different kinds are not equal. Throws for a
 * text and a repeated field; callers run in `comparing`.
 */
export function equals(a: CelValue, b: CelValue): boolean {
  if (typeof a === "string") {
    charge(1 + a.length);
    if (typeof b === "object") checkComparable(a, b);
    return a === b;
  }
  if (typeof a === "boolean" || a === null) return a === b;
  if (isNumeric(a)) return isNumeric(b) && compareNumbers(a, b) === 0;
  checkComparable(b, a);
  return typeof b === "object" && b !== null && equalObjects(a, b);
}

/** -1, 0 or 1; undefined when the two have no order: different kinds, NaN, or kinds without one. */
export function compare(a: CelValue, b: CelValue): number | undefined {
  if (isNumeric(a)) return isNumeric(b) ? compareNumbers(a, b) : undefined;
  if (typeof a === "string") return typeof b === "string" ? compareText(a, b) : undefined;
  if (typeof a === "boolean") return typeof b === "boolean" ? Number(a) - Number(b) : undefined;
  if (a instanceof CelTimestamp && b instanceof CelTimestamp) return order(a.nanos, b.nanos);
  if (a instanceof CelDuration && b instanceof CelDuration) return order(a.nanos, b.nanos);
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    charge(Math.min(a.length, b.length));
    return Buffer.compare(a, b);
  }
  return undefined;
}

/** Steps of comparing two lists or maps, two elements, two characters. */
const PER_OBJECT = 32;
const PER_ELEMENT = 16;
const PER_CHARACTER = 4;

function equalObjects(a: CelValue & object, b: CelValue & object): boolean {
  charge(PER_OBJECT);
  if (isList(a)) {
    if (!isList(b) || a.length !== b.length) return false;
    charge(a.length * PER_ELEMENT);
    return a.every((item, index) => equals(adopt(item), adopt(b[index])));
  }
  if (a instanceof Uint8Array) {
    charge(a.length);
    return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  }
  if (a instanceof CelTimestamp) return b instanceof CelTimestamp && a.nanos === b.nanos;
  if (a instanceof CelDuration) return b instanceof CelDuration && a.nanos === b.nanos;
  if (a instanceof CelType) return b instanceof CelType && a.name === b.name;
  if (a instanceof CelOptional) {
    if (!(b instanceof CelOptional)) return false;
    return a.value === undefined || b.value === undefined ? a.value === b.value : equals(a.value, b.value);
  }
  if (a instanceof CelOpaque) return b instanceof CelOpaque && kindOf(a) === kindOf(b) && a.equals(b);
  if (!isMap(a) || !isMap(b) || mapSize(a) !== mapSize(b)) return false;
  return mapKeys(a).every((key) => {
    const [mine, other] = [mapGet(a, key), mapGet(b, key)];
    return mine !== undefined && other !== undefined && equals(mine, other);
  });
}

export type Numeric = bigint | number | CelUint;

export function isNumeric(value: CelValue): value is Numeric {
  return typeof value === "bigint" || typeof value === "number" || value instanceof CelUint;
}

function compareNumbers(a: Numeric, b: Numeric): number | undefined {
  const [x, y] = [a instanceof CelUint ? a.value : a, b instanceof CelUint ? b.value : b];
  // The language compares an integer with a double as doubles, so that the largest ints equal 2^63.
  return typeof x === typeof y ? order(x, y) : order(Number(x), Number(y));
}

function order(a: bigint | number, b: bigint | number): number | undefined {
  if (a < b) return -1;
  if (a > b) return 1;
  // NaN is neither less, nor greater, nor equal.
  return a >= b ? 0 : undefined;
}

/** By code points: UTF-16 units of pairs sort below those of U+E000 and above, so that `<` would be wrong there. */
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  charge(length * PER_CHARACTER);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x === y) continue;
    const [xPair, yPair] = [x >= 0xd800 && x <= 0xdfff, y >= 0xd800 && y <= 0xdfff];
    if (xPair !== yPair) return xPair ? 1 : -1;
    return x < y ? -1 : 1;
  }
  return Math.sign(a.length - b.length);
}
