/** The extension `math`: extremes, bits, rounding, signs. */
import { fn, type Overload } from "../environment/overload.ts";
import { BOOL, BYTES, DOUBLE, DYN, INT, list, type Type, UINT } from "../environment/types.ts";
import { adopt } from "../values/access.ts";
import { charge } from "../values/budget.ts";
import { compare, isNumeric, type Numeric } from "../values/equality.ts";
import { type Failure, fail } from "../values/failure.ts";
import { CelUint, type CelValue } from "../values/types.ts";
import { int } from "./operators.ts";

/** Steps for each value that is compared. */
const PER_VALUE = 32;

function extreme(name: string, better: (order: number) => boolean): Overload[] {
  const run = (values: readonly CelValue[]): CelValue | Failure => {
    charge(values.length * PER_VALUE);
    let best: CelValue | undefined;
    for (const item of values) {
      const value = adopt(item);
      if (!isNumeric(value)) return fail(`${name} needs numbers`);
      if (best === undefined || better(compare(value, best) ?? 0)) best = value;
    }
    return best ?? fail(`${name} needs at least one number`);
  };
  const variadic = (type: Type): Overload => ({
    ...fn(name, [type], type, (...values: readonly CelValue[]) => run(values)),
    variadic: true,
  });
  const ofList = (type: Type): Overload => fn(name, [list(type)], type, run);
  return [
    ...[INT, UINT, DOUBLE].flatMap((type) => [variadic(type), ofList(type)]),
    ...MIXED.map((type) => variadic(type)),
    ofList(DYN),
  ];
}

const MIXED = [DYN];

const onDouble = (name: string, result: Type, run: (value: number) => CelValue): Overload =>
  fn(`math.${name}`, [DOUBLE], result, run);

function round(value: number): number {
  return value < 0 ? -Math.floor(-value + 0.5) : Math.floor(value + 0.5);
}

function sign(name: string, run: (value: number) => number): Overload[] {
  return [
    fn(name, [DOUBLE], DOUBLE, run),
    fn(name, [INT], INT, (value: bigint) =>
      name === "math.abs" ? int(value < 0n ? -value : value) : BigInt(run(Number(value))),
    ),
    fn(name, [UINT], UINT, (value: CelUint) =>
      name === "math.abs" ? value : new CelUint(BigInt(run(Number(value.value)))),
    ),
  ];
}

function bits(name: string, run: (a: bigint, b: bigint) => bigint): Overload[] {
  return [
    fn(`math.${name}`, [INT, INT], INT, run),
    fn(`math.${name}`, [UINT, UINT], UINT, (a: CelUint, b: CelUint) => new CelUint(run(a.value, b.value))),
  ];
}

/** Bytes are counted from their ends, and those of the shorter value are filled up with zeros. */
function bitsOfBytes(name: string, run: (a: number, b: number) => number): Overload {
  return fn(`math.${name}`, [BYTES, BYTES], BYTES, (a: Uint8Array, b: Uint8Array) => {
    if (Math.max(a.length, b.length) > MAX_BITS_BYTES)
      return fail(`math.${name} takes at most ${MAX_BITS_BYTES} bytes`);
    const result = new Uint8Array(Math.max(a.length, b.length));
    for (let i = 1; i <= result.length; i++) result[result.length - i] = run(a.at(-i) ?? 0, b.at(-i) ?? 0);
    return result;
  });
}

const MAX_BITS_BYTES = 32;

/** An integer with the last eight bytes of bytes, in either order. */
function bitsOfBoth(name: string, run: (a: bigint, b: bigint) => bigint): Overload[] {
  const ofInt = (value: bigint, bytes: Uint8Array): CelValue | Failure =>
    value < 0n ? fail(`math.${name} of a negative int and bytes`) : BigInt.asIntN(64, run(value, lastBits(bytes)));
  const ofUint = ({ value }: CelUint, bytes: Uint8Array): CelValue =>
    new CelUint(BigInt.asUintN(64, run(value, lastBits(bytes))));
  return [
    fn(`math.${name}`, [INT, BYTES], INT, ofInt),
    fn(`math.${name}`, [BYTES, INT], INT, (bytes: Uint8Array, value: bigint) => ofInt(value, bytes)),
    fn(`math.${name}`, [UINT, BYTES], UINT, ofUint),
    fn(`math.${name}`, [BYTES, UINT], UINT, (bytes: Uint8Array, value: CelUint) => ofUint(value, bytes)),
  ];
}

function lastBits(bytes: Uint8Array): bigint {
  return bytes.subarray(-8).reduce((bits, byte) => (bits << 8n) | BigInt(byte), 0n);
}

function shift(name: string, run: (bits: bigint, by: bigint) => bigint): Overload[] {
  const guarded = (by: bigint, value: () => CelValue): CelValue | Failure =>
    by < 0n ? fail(`math.${name} by a negative number`) : value();
  return [
    fn(`math.${name}`, [INT, INT], INT, (value: bigint, by: bigint) =>
      guarded(by, () => (by >= 64n ? 0n : BigInt.asIntN(64, run(BigInt.asUintN(64, value), by)))),
    ),
    fn(`math.${name}`, [UINT, INT], UINT, ({ value }: CelUint, by: bigint) =>
      guarded(by, () => new CelUint(by >= 64n ? 0n : BigInt.asUintN(64, run(value, by)))),
    ),
  ];
}

/** The extension `math`. */
export const MATH: readonly Overload[] = [
  ...["math.greatest", "max"].flatMap((name) => extreme(name, (order) => order > 0)),
  ...["math.least", "min"].flatMap((name) => extreme(name, (order) => order < 0)),
  onDouble("ceil", DOUBLE, Math.ceil),
  onDouble("floor", DOUBLE, Math.floor),
  onDouble("round", DOUBLE, round),
  onDouble("trunc", DOUBLE, Math.trunc),
  onDouble("isNaN", BOOL, Number.isNaN),
  onDouble("isInf", BOOL, (value) => Math.abs(value) === Number.POSITIVE_INFINITY),
  onDouble("isFinite", BOOL, Number.isFinite),
  ...sign("math.abs", Math.abs),
  ...sign("math.sign", Math.sign),
  ...[INT, UINT, DOUBLE].map((type) =>
    fn("math.sqrt", [type], DOUBLE, (value: Numeric) =>
      Math.sqrt(Number(value instanceof CelUint ? value.value : value)),
    ),
  ),
  ...bits("bitAnd", (a, b) => a & b),
  ...bits("bitOr", (a, b) => a | b),
  ...bits("bitXor", (a, b) => a ^ b),
  ...bitsOfBoth("bitAnd", (a, b) => a & b),
  ...bitsOfBoth("bitOr", (a, b) => a | b),
  ...bitsOfBoth("bitXor", (a, b) => a ^ b),
  bitsOfBytes("bitAnd", (a, b) => a & b),
  bitsOfBytes("bitOr", (a, b) => a | b),
  bitsOfBytes("bitXor", (a, b) => a ^ b),
  fn("math.bitNot", [INT], INT, (value: bigint) => ~value),
  fn("math.bitNot", [UINT], UINT, ({ value }: CelUint) => new CelUint(BigInt.asUintN(64, ~value))),
  ...shift("bitShiftLeft", (value, by) => value << by),
  ...shift("bitShiftRight", (value, by) => value >> by),
];
