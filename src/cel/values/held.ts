import { detached } from "../../base/detached.ts";
import { charge, continueBudget, endBudget } from "../evaluate/budget.ts";
import { CelMap } from "./map.ts";
import type { CelValue } from "./types.ts";

/** Bytes of an element or a field, with its number; of a list or map. Approximate, as V8 lays them out. */
const PER_FIELD = 32;
const PER_OBJECT = 64;
/** Characters from which on a part of a text refers to the whole. */
const REFERRING = 13;

/** A value that is kept for longer than an evaluation, and about how many bytes it takes. */
export interface Held {
  readonly value: CelValue;
  readonly bytes: number;
}

/**
 * The value of the last evaluation in a form to keep: parts of a text are copied, since they would keep the whole in memory, which may
 * be a body. At the expense of the same budget; throws an Error if that is used up.
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
