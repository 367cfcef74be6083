/** Conversions and the other functions of the standard definitions of CEL. */
import { isUtf8 } from "node:buffer";
import { both, fn, method, type Overload } from "../environment/overload.ts";
import {
  A,
  B,
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  list,
  map,
  STRING,
  TIMESTAMP,
  type Type,
  typeOf,
  UINT,
} from "../environment/types.ts";
import { type AnyMap, kindOf, mapSize } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { formatDuration, formatTimestamp } from "../values/convert.ts";
import { type Failure, fail } from "../values/failure.ts";
import { type CelDuration, type CelTimestamp, CelType, type CelUint, type CelValue } from "../values/types.ts";
import { int, uint } from "./operators.ts";
import { matchesPattern, patternTest } from "./patterns.ts";
import { find } from "./search.ts";

/** Steps for each character that is compared, counted or read as a number. */
const PER_CHARACTER = 4;
/** Bytes for each step of a conversion to text or bytes: 0.1 ns each, 1 ns where the text is not ASCII. */
const PER_STEP = 8;
/** Steps of a buffer. */
const PER_BUFFER = 512;

/** Unicode characters, not UTF-16 units. */
function codePoints(text: string): number {
  charge(text.length * PER_CHARACTER);
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit <= 0xdbff && i + 1 < text.length) i++;
    count++;
  }
  return count;
}

/** Doubles as Go's `%g` in its shortest form and CEL agree on the common ones: no exponent between 1e-7 and 1e21. */
function formatDouble(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return Object.is(value, -0) ? "-0" : String(value).replace(/e([+-])(\d)$/, "e$10$2");
}

function truncate(value: number, make: (value: bigint) => CelValue | Failure): CelValue | Failure {
  return Number.isFinite(value) ? make(BigInt(Math.trunc(value))) : fail("the number has no integer value");
}

/** Doubles near the ends of the range are rejected, since not all of them are exact. */
function doubleToInt(value: number): CelValue | Failure {
  return Math.abs(value) >= 2 ** 63 ? fail("integer overflow") : truncate(value, int);
}

function parseInteger(text: string, make: (value: bigint) => CelValue | Failure): CelValue | Failure {
  if (!/^[+-]?\d{1,20}$/.test(text)) return fail(`${JSON.stringify(text.slice(0, 60))} is not an integer`);
  return make(BigInt(text.replace(/^\+/, "")));
}

function parseDouble(text: string): CelValue | Failure {
  charge(text.length * PER_CHARACTER);
  if (/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return Number(text);
  const word = /^([+-]?)(?:inf|infinity)$/i.exec(text);
  if (word !== null) return word[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return /^nan$/i.test(text) ? Number.NaN : fail(`${JSON.stringify(text.slice(0, 60))} is not a number`);
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function decode(bytes: Uint8Array): CelValue | Failure {
  charge(PER_BUFFER + Math.ceil(bytes.length / PER_STEP));
  return isUtf8(bytes) ? asBuffer(bytes).toString("utf8") : fail("the bytes are not UTF-8");
}

function toBool(text: string): CelValue | Failure {
  if (/^(?:1|t|true|TRUE|True)$/.test(text)) return true;
  if (/^(?:0|f|false|FALSE|False)$/.test(text)) return false;
  return fail(`${JSON.stringify(text.slice(0, 60))} is neither true nor false`);
}

const same = (type: Type, name = type.name): Overload => fn(name, [type], type, (value: CelValue) => value);

const CONVERSIONS: readonly Overload[] = [
  same(INT),
  fn("int", [UINT], INT, ({ value }: CelUint) => int(value)),
  fn("int", [DOUBLE], INT, doubleToInt),
  fn("int", [STRING], INT, (text: string) => parseInteger(text, int)),
  fn(
    "int",
    [TIMESTAMP],
    INT,
    ({ nanos }: CelTimestamp) =>
      (nanos - (((nanos % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n)) / 1_000_000_000n,
  ),
  fn("int", [DURATION], INT, ({ nanos }: CelDuration) => nanos / 1_000_000_000n),
  same(UINT),
  fn("uint", [INT], UINT, uint),
  fn("uint", [DOUBLE], UINT, (value: number) =>
    value < 0 ? fail("unsigned integer overflow") : truncate(value, uint),
  ),
  fn("uint", [STRING], UINT, (text: string) => parseInteger(text, uint)),
  same(DOUBLE),
  fn("double", [INT], DOUBLE, Number),
  fn("double", [UINT], DOUBLE, ({ value }: CelUint) => Number(value)),
  fn("double", [STRING], DOUBLE, parseDouble),
  same(STRING),
  fn("string", [INT], STRING, String),
  fn("string", [UINT], STRING, ({ value }: CelUint) => String(value)),
  fn("string", [DOUBLE], STRING, formatDouble),
  fn("string", [BOOL], STRING, String),
  fn("string", [BYTES], STRING, decode),
  fn("string", [TIMESTAMP], STRING, formatTimestamp),
  fn("string", [DURATION], STRING, formatDuration),
  same(BYTES),
  fn("bytes", [STRING], BYTES, (text: string) => {
    charge(PER_BUFFER + text.length);
    return Buffer.from(text);
  }),
  same(BOOL),
  fn("bool", [STRING], BOOL, toBool),
  fn("dyn", [A], DYN, (value: CelValue) => value),
  fn("type", [A], typeOf(A), (value: CelValue) => new CelType(kindOf(value))),
];

export const STANDARD: readonly Overload[] = [
  ...CONVERSIONS,
  ...both("size", [STRING], INT, (text: string) => BigInt(codePoints(text))),
  ...both("size", [BYTES], INT, (bytes: Uint8Array) => BigInt(bytes.length)),
  ...both("size", [list(A)], INT, (items: readonly CelValue[]) => BigInt(items.length)),
  ...both("size", [map(A, B)], INT, (value: AnyMap) => BigInt(mapSize(value))),
  method("contains", [STRING, STRING], BOOL, (text: string, part: string) => find(text, part) !== -1),
  ...[STRING, BYTES].map((type) =>
    method("contains", [BYTES, type], BOOL, (bytes: Uint8Array, part: string | Uint8Array) => {
      charge(PER_BUFFER + Math.ceil((bytes.length + part.length) / PER_STEP));
      const wanted = typeof part === "string" ? Buffer.from(part) : asBuffer(part);
      // One character per byte.
      return find(asBuffer(bytes).toString("latin1"), wanted.toString("latin1")) !== -1;
    }),
  ),
  method("startsWith", [STRING, STRING], BOOL, (text: string, part: string) => {
    charge(part.length * PER_CHARACTER);
    return text.startsWith(part);
  }),
  method("endsWith", [STRING, STRING], BOOL, (text: string, part: string) => {
    charge(part.length * PER_CHARACTER);
    return text.endsWith(part);
  }),
  ...both("matches", [STRING, STRING], BOOL, matchesPattern).map((overload) => ({ ...overload, prepare: patternTest })),
];
