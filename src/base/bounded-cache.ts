/**
 * A map of at most `limit` entries that keeps at least the `limit / 2` used last; for values that can be computed again, not for
 * state. The older of its two generations is dropped as a whole: a hit in the younger costs one look-up and moves nothing, where a
 * list in order of use would be rewritten at every hit.
 */
export class BoundedCache<Value> {
  readonly #half: number;
  readonly #keepsOld: boolean;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();

  /** `limit`: entries, at least 1. */
  constructor(limit: number) {
    this.#half = Math.max(1, limit >> 1);
    this.#keepsOld = limit > 1;
  }

  get(key: string): Value | undefined {
    const value = this.#young.get(key);
    if (value !== undefined) return value;
    const old = this.#old.get(key);
    if (old !== undefined) this.#put(key, old);
    return old;
  }

  set(key: string, value: Value): void {
    this.#put(owned(key), value);
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  #put(key: string, value: Value): void {
    if (this.#young.size >= this.#half && !this.#young.has(key)) {
      if (this.#keepsOld) this.#old = this.#young;
      this.#young = new Map();
    }
    this.#old.delete(key);
    this.#young.set(key, value);
  }
}

/** A copy of the text: a substring would keep the whole request head in memory, up to 60 KiB. */
function owned(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}
