/** Values as data, text and bytes for what is outside of CEL. */
import { adopt } from "./access.ts";
import { type Budget, charge, continueBudget, endBudget, startBudget } from "./budget.ts";
import {
  CelDuration,
  CelMapLike,
  CelOpaque,
  CelOptional,
  CelTimestamp,
  CelType,
  CelUint,
  type CelValue,
} from "./types.ts";

/**
 * The value of the last evaluation as data that JSON.stringify accepts, charged to its budget, or to the budget `apart`; throws an Error if
 * the budget is used up. Integers beyond 2^53 become strings, bytes base64, timestamps and durations
 * text (`2024-01-01T00:00:00Z`, `1.5s`), types their names, none null. Keys of maps become strings.
 */
export function toJson(value: CelValue, apart?: Budget): unknown {
  if (apart === undefined) continueBudget();
  else startBudget(apart);
  try {
    return jsonOf(value);
  } finally {
    endBudget();
  }
}

/** Steps for each value, and for each field of an object. */
const PER_VALUE = 32;
const PER_FIELD = 256;

/** Like toJson, as a part of an evaluation and its budget. `large` converts integers beyond 2^53. */
export function jsonOf(value: CelValue, large: (value: bigint) => unknown = String): unknown {
  charge(PER_VALUE);
  switch (typeof value) {
    case "bigint":
      return integerToJson(value, large);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "string":
      charge(value.length);
      return value;
    case "boolean":
      return value;
    default:
      return objectToJson(value, large);
  }
}

/**
 * The value as the text of a header or a log field; undefined for null and none. Bytes are read as UTF-8. Throws TypeError
 * for lists and maps.
 */
export function toText(value: CelValue): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "bigint":
    case "boolean":
    case "number":
      return String(value);
    default:
  }
  if (value === null) return undefined;
  if (value instanceof CelOptional) return value.value === undefined ? undefined : toText(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString();
  const json = objectToJson(value);
  if (typeof json === "object")
    throw new TypeError("a list or map has no text; use json functions or one of its fields");
  return String(json);
}

/** The value as bytes: bytes as they are, everything else the UTF-8 of its text, null and none empty. Throws as toText. */
export function toBytes(value: CelValue): Uint8Array {
  return value instanceof Uint8Array ? value : Buffer.from(toText(value) ?? "");
}

function integerToJson(value: bigint, large: (value: bigint) => unknown): unknown {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : large(value);
}

function objectToJson(
  value: Exclude<CelValue, bigint | number | string | boolean>,
  large: (value: bigint) => unknown = String,
): unknown {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map((item) => jsonOf(adopt(item), large));
  if (value instanceof Uint8Array) {
    charge(value.length);
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  }
  if (value instanceof CelUint) return integerToJson(value.value, large);
  if (value instanceof CelMapLike)
    return Object.fromEntries(
      value.keys().map((key) => {
        charge(PER_FIELD);
        return [toText(key) ?? "", jsonOf(value.get(key) ?? null, large)];
      }),
    );
  if (value instanceof CelTimestamp) return formatTimestamp(value);
  if (value instanceof CelDuration) return formatDuration(value);
  if (value instanceof CelType) return value.name;
  if (value instanceof CelOptional) return value.value === undefined ? null : jsonOf(value.value, large);
  if (value instanceof CelOpaque) return value.toString();
  const names = Object.keys(value);
  charge(names.length * PER_FIELD);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, jsonOf(adopt(item), large)]));
}

/** RFC 3339 in UTC, with as many digits of the fraction as the value has. */
export function formatTimestamp({ nanos }: CelTimestamp): string {
  const fraction = ((nanos % NANOS) + NANOS) % NANOS;
  const seconds = (nanos - fraction) / NANOS;
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, -5);
  return `${whole}${fractionText(fraction)}Z`;
}

/** Seconds with as many digits of the fraction as the value has, as in `1.5s`. */
export function formatDuration({ nanos }: CelDuration): string {
  const absolute = nanos < 0n ? -nanos : nanos;
  return `${nanos < 0n ? "-" : ""}${absolute / NANOS}${fractionText(absolute % NANOS)}s`;
}

const NANOS = 1_000_000_000n;

function fractionText(nanos: bigint): string {
  return nanos === 0n ? "" : `.${String(nanos).padStart(9, "0").replace(/0+$/, "")}`;
}
