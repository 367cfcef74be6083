import { DOUBLE, INT, UINT } from "../check/types.ts";
import { type Failure, fail } from "../evaluate/failure.ts";
import { CelUint, type CelValue } from "../values/types.ts";
import { fn, type Overload } from "./overload.ts";

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

export const ARITHMETIC: readonly Overload[] = [
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
