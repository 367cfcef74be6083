/** Maps that expressions make, with keys of four types. */
import { charge } from "./budget.ts";
import { CelMapLike, CelUint, type CelValue } from "./types.ts";

/** Steps for each key that is listed. */
const PER_KEY = 16;

type Key = string | boolean | bigint;

interface Entry {
  readonly key: CelValue;
  readonly value: CelValue;
}

/**
 * A map that an expression made. Keys are strings, booleans, ints or uints; numeric keys that are equal as numbers are one
 * key, whatever their type. Entries keep the order of insertion.
 */
export class CelMap extends CelMapLike {
  readonly #entries = new Map<Key, Entry>();

  get size(): number {
    return this.#entries.size;
  }

  get(key: CelValue): CelValue | undefined {
    const normal = normalKey(key);
    return normal === undefined ? undefined : this.#entries.get(normal)?.value;
  }

  /** False, and nothing done, when the key is of a type that cannot be one or is there already. */
  add(key: CelValue, value: CelValue): boolean {
    const normal = normalKey(key);
    if (normal === undefined || typeof key === "number" || this.#entries.has(normal)) return false;
    this.#entries.set(normal, { key, value });
    return true;
  }

  keys(): readonly CelValue[] {
    charge(this.size * PER_KEY);
    return Array.from(this.#entries.values(), ({ key }) => key);
  }
}

/** Equal keys have the same normal form; undefined for values that cannot equal a key. */
function normalKey(key: CelValue): Key | undefined {
  switch (typeof key) {
    case "string":
    case "boolean":
    case "bigint":
      return key;
    case "number":
      return Number.isInteger(key) ? BigInt(key) : undefined;
    default:
      return key instanceof CelUint ? key.value : undefined;
  }
}
