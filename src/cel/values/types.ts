/**
 * A value of an expression. Integers are bigint, doubles number. Lists are arrays and maps are CelMapLike or, where data came
 * from outside, plain objects with own string keys; the elements of those may be anything that JSON has.
 */
export type CelValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | CelUint
  | CelTimestamp
  | CelDuration
  | CelType
  | CelOptional
  | CelOpaque
  | CelMapLike
  | CelList
  | PlainObject;

export type CelList = readonly CelValue[];

/** An object of data from outside: only its own enumerable properties count. */
export interface PlainObject {
  readonly [name: string]: CelValue;
}

/** An unsigned integer, 0 to 2^64 - 1. */
export class CelUint {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

/** A point in time, in nanoseconds since 1970-01-01T00:00:00Z. */
export class CelTimestamp {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }

  static fromDate(date: Date): CelTimestamp {
    return new CelTimestamp(BigInt(date.getTime()) * 1_000_000n);
  }
}

/** A length of time in nanoseconds. */
export class CelDuration {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }

  /** `milliseconds` may have a fraction, as `performance.now()` has. */
  static fromMilliseconds(milliseconds: number): CelDuration {
    return new CelDuration(BigInt(Math.round(milliseconds * 1e6)));
  }
}

/** A type as a value: what `type(x)` gives. */
export class CelType {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** An optional value; `undefined` inside means none. */
export class CelOptional {
  static readonly NONE = new CelOptional(undefined);
  readonly value: CelValue | undefined;

  constructor(value: CelValue | undefined) {
    this.value = value;
  }
}

/** Values that only functions look into, such as IP addresses. `typeName` is their type's name. */
export abstract class CelOpaque {
  abstract readonly typeName: string;
  /** Equality with another value of the same type. */
  abstract equals(other: CelOpaque): boolean;
  /** The result of `string()` and toText. */
  abstract toString(): string;
}

/** A text that is shown nowhere: only `unredacted()` gives it. */
export class CelSecret extends CelOpaque {
  readonly typeName = "secret";
  readonly #text: string;

  constructor(text: string) {
    super();
    this.#text = text;
  }

  get text(): string {
    return this.#text;
  }
  equals(other: CelOpaque): boolean {
    return other instanceof CelSecret && other.#text === this.#text;
  }
  toString(): string {
    return "<redacted>";
  }
  toJSON(): string {
    return this.toString();
  }
}

/** A map that is not a plain object. */
export abstract class CelMapLike {
  abstract readonly size: number;
  /** The value of `key`, or undefined. */
  abstract get(key: CelValue): CelValue | undefined;
  abstract keys(): readonly CelValue[];
}
