/** Slots of the first table. All sizes are powers of two. */
const FIRST_SIZE = 8;
/** The table of all maps that have had no value yet; never written to. */
const NO_SLOTS: undefined[] = [];
/** A table grows when more than this part of its slots is taken. */
const MAX_LOAD = 0.5;

/**
 * Values by their stream id: a hash table with linear probing that keeps no reference to deleted values.
 *
 * A `Map` does. V8 gives a Map whose entries come and go a new table every few insertions, and the old table points to the new
 * one. Once such a table has reached the old generation, all later tables survive every scavenge with the streams in them, until
 * a full collection: a unary gRPC call cost 1.6 times the CPU.
 */
export class IdMap<Value extends { readonly id: number }> {
  #slots: (Value | undefined)[] = NO_SLOTS;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Value | undefined {
    const slots = this.#slots;
    const mask = slots.length - 1;
    if (mask < 0) return undefined;
    for (let at = home(id, mask); ; at = (at + 1) & mask) {
      const value = slots[at];
      if (value === undefined || value.id === id) return value;
    }
  }

  /** Adds `value`, or replaces the one with the same id. */
  set(value: Value): void {
    if (this.#size + 1 > this.#slots.length * MAX_LOAD) this.#grow();
    if (place(this.#slots, value)) this.#size++;
  }

  /** Returns whether the id was there. */
  delete(id: number): boolean {
    const slots = this.#slots;
    const mask = slots.length - 1;
    if (mask < 0) return false;
    let hole = home(id, mask);
    while (slots[hole]?.id !== id) {
      if (slots[hole] === undefined) return false;
      hole = (hole + 1) & mask;
    }
    // An entry after the hole moves into it, unless that would put it before its home slot.
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const value = slots[at];
      if (value === undefined) break;
      if (((at - home(value.id, mask)) & mask) < ((at - hole) & mask)) continue;
      slots[hole] = value;
      hole = at;
    }
    slots[hole] = undefined;
    this.#size--;
    return true;
  }

  /** All values, by ascending id. */
  values(): Value[] {
    return this.#slots.filter((value) => value !== undefined).sort((a, b) => a.id - b.id);
  }

  clear(): void {
    this.#slots = NO_SLOTS;
    this.#size = 0;
  }

  #grow(): void {
    const slots = new Array<Value | undefined>(this.#slots.length * 2 || FIRST_SIZE).fill(undefined);
    for (const value of this.#slots) if (value !== undefined) place(slots, value);
    this.#slots = slots;
  }
}

/** The last bit is the same for all ids of one side, so it is left out. */
function home(id: number, mask: number): number {
  return (id >>> 1) & mask;
}

/** Puts the value into its slot. Returns whether its id is new. */
function place<Value extends { readonly id: number }>(slots: (Value | undefined)[], value: Value): boolean {
  const mask = slots.length - 1;
  let at = home(value.id, mask);
  for (let found = slots[at]; found !== undefined && found.id !== value.id; found = slots[at]) at = (at + 1) & mask;
  const isNew = slots[at] === undefined;
  slots[at] = value;
  return isNew;
}
