/**
 * A map of at most `limit` entries that keeps at least the `limit / 2` used last; for values that can be computed again, not for
 * state. The older of its two generations is dropped as a whole: a hit in the younger costs one look-up and moves nothing, where a
 * list in order of use would be rewritten at every hit.
 * With `weigh`, the sum of the values' weights is bounded in the same way.
 */
export class BoundedCache<Value, Key extends string | object = string> {
  readonly #half: number;
  readonly #halfWeight: number;
  readonly #weigh: ((value: Value) => number) | undefined;
  /** Of the younger generation. */
  #weight = 0;
  readonly #keepsOld: boolean;
  #young = new Map<Key, Value>();
  #old = new Map<Key, Value>();

  /** `limit`: entries, at least 1. A value that alone weighs more than half of `maxWeight` is not kept. */
  constructor(limit: number, maxWeight = Number.POSITIVE_INFINITY, weigh?: (value: Value) => number) {
    this.#half = Math.max(1, limit >> 1);
    this.#halfWeight = maxWeight / 2;
    this.#weigh = weigh;
    this.#keepsOld = limit > 1;
  }

  get(key: Key): Value | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const old = this.#old.get(key);
    if (old !== undefined) this.#put(key, old);
    return old;
  }

  set(key: Key, value: Value): void {
    this.#put(typeof key === "string" ? (owned(key) as Key) : key, value);
  }

  delete(key: Key): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  #put(key: Key, value: Value): void {
    const weight = this.#weigh?.(value) ?? 0;
    if (weight > this.#halfWeight) return;
    // A replaced value counts twice until the generation ends, so that the generation merely ends earlier.
    const full = this.#young.size >= this.#half && !this.#young.has(key);
    if (full || this.#weight + weight > this.#halfWeight) {
      if (this.#keepsOld) this.#old = this.#young;
      this.#young = new Map();
      this.#weight = 0;
    }
    this.#weight += weight;
    this.#old.delete(key);
    this.#young.set(key, value);
  }
}

/** A copy of the text: a substring would keep the whole request head in memory, up to 60 KiB. */
export function owned(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}
