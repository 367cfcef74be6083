/** Values that outlive their evaluation: copied, so that they keep no message alive, and measured. */
import { detached } from "../../base/detached.ts";
import { charge, continueBudget, endBudget } from "./budget.ts";
import { CelMap } from "./map.ts";
import type { CelValue } from "./types.ts";

/** Bytes of an element or field, including its number; of a list or map. Approximately as V8 lays them out. */
const PER_FIELD = 32;
const PER_OBJECT = 64;
/** Substrings of at least this many characters refer to the whole string. */
const REFERRING = 13;

/** A value that is kept longer than one evaluation, and roughly how many bytes it takes. */
interface Held {
  readonly value: CelValue;
  readonly bytes: number;
}

/**
 * The value of the last evaluation in a form to keep: substrings are copied, since they would keep the whole string, which may be a body, in
 * memory. Charged to the same budget; throws an Error if that is used up.
 */
export function held(value: CelValue): Held {
  if (typeof value !== "object" && typeof value !== "string") return { value, bytes: 0 };
  continueBudget();
  try {
    const keeper = new Keeper();
    return { value: keeper.keep(value), bytes: keeper.bytes };
  } finally {
    endBudget();
  }
}

class Keeper {
  bytes = 0;

  keep(value: CelValue): CelValue {
    charge(PER_OBJECT);
    if (typeof value === "string") return this.#text(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      this.bytes += PER_OBJECT + value.length * PER_FIELD;
      return value.map((item: CelValue) => this.keep(item));
    }
    if (value instanceof Uint8Array) {
      this.bytes += value.length;
      return value;
    }
    if (value instanceof CelMap) {
      this.bytes += PER_OBJECT;
      const copy = new CelMap();
      for (const key of value.keys()) {
        this.bytes += 2 * PER_FIELD;
        copy.add(this.keep(key), this.keep(value.get(key) ?? null));
      }
      return copy;
    }
    return Object.getPrototypeOf(value) === Object.prototype ? this.#data(value as object) : value;
  }

  #text(text: string): string {
    charge(text.length);
    this.bytes += PER_FIELD + 2 * text.length;
    return text.length < REFERRING ? text : detached(text);
  }

  #data(value: object): CelValue {
    this.bytes += PER_OBJECT;
    const fields = Object.entries(value).map(([name, item]): readonly [string, CelValue] => {
      this.bytes += PER_FIELD + 2 * name.length;
      return [name, this.keep(item)];
    });
    return Object.fromEntries(fields);
  }
}
