/** Values from data of the gateway, made when they are read: fields, elements, numbers. */
import { charge } from "./budget.ts";
import {
  CelDuration,
  CelMapLike,
  CelOpaque,
  CelOptional,
  CelTimestamp,
  CelType,
  CelUint,
  type CelValue,
  type PlainObject,
} from "./types.ts";

/** Data from outside as a value: undefined is null, Date a timestamp, functions and symbols null. Costs nothing else. */
export function adopt(value: unknown): CelValue {
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
    case "bigint":
      return value;
    case "object":
      return value instanceof Date ? CelTimestamp.fromDate(value) : (value as CelValue);
    default:
      return null;
  }
}

/**
 * A part of data as JSON has it, as a value. Numbers without a fraction are ints as long as a double tells them apart from
 * their neighbours, others are doubles.
 */
export function fromData(value: unknown): CelValue {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  return Array.isArray(value) ? listFromData(value) : adopt(value);
}

/** The list itself when nothing in it has another form as a value. */
function listFromData(items: readonly unknown[]): CelValue {
  charge(items.length * 4);
  const isPlain = items.every((item) => typeof item === "string" || (typeof item === "object" && !Array.isArray(item)));
  return isPlain ? (items as readonly CelValue[]) : items.map(fromData);
}

/** The name of the value's type, without parameters. */
export function kindOf(value: CelValue): string {
  switch (typeof value) {
    case "string":
      return "string";
    case "bigint":
      return "int";
    case "number":
      return "double";
    case "boolean":
      return "bool";
    default:
      if (value === null) return "null_type";
      return Object.getPrototypeOf(value) === Object.prototype ? "map" : kindOfObject(value);
  }
}

function kindOfObject(value: object): string {
  if (Array.isArray(value)) return "list";
  if (value instanceof CelMapLike) return "map";
  if (value instanceof CelUint) return "uint";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof CelTimestamp) return "google.protobuf.Timestamp";
  if (value instanceof CelDuration) return "google.protobuf.Duration";
  if (value instanceof CelType) return "type";
  if (value instanceof CelOptional) return "optional_type";
  return value instanceof CelOpaque ? value.typeName : "map";
}

/** Steps for each listed key. */
const PER_KEY = 64;

export type AnyMap = CelMapLike | PlainObject;

export function isMap(value: CelValue): value is AnyMap {
  if (typeof value !== "object" || value === null) return false;
  return Object.getPrototypeOf(value) === Object.prototype || kindOfObject(value) === "map";
}

export function isList(value: CelValue): value is readonly CelValue[] {
  return Array.isArray(value);
}

/** The value of `key`, or undefined. Of plain objects only own properties can be read. */
export function mapGet(map: AnyMap, key: CelValue): CelValue | undefined {
  if (map instanceof CelMapLike) return map.get(key);
  if (typeof key !== "string" || !Object.hasOwn(map, key)) return undefined;
  const value = map[key];
  return value === undefined ? undefined : fromData(value);
}

export function mapKeys(map: AnyMap): readonly CelValue[] {
  if (map instanceof CelMapLike) return map.keys();
  const keys = Object.keys(map);
  charge(keys.length * PER_KEY);
  return keys.filter((key) => map[key] !== undefined);
}

export function mapSize(map: AnyMap): number {
  return map instanceof CelMapLike ? map.size : mapKeys(map).length;
}
