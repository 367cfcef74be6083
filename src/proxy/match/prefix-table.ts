/** Finds values by path prefix for many host names at the cost of one lookup for each length. */
const FIRST_SLOTS = 16;
const FREE = -1;

/**
 * Values by owner and path prefix, for all hostnames of a router together. Hostnames often share their prefixes, so these
 * are numbered by one map that stays in the processor's cache; the pair of numbers then costs one line of the table below,
 * where a map for each hostname costs about five (its object, its table's head, bucket and entry, the text of the key).
 */
export class PrefixTable<V> {
  readonly #numbers = new Map<string, number>();
  /** Open addressing with linear probing, at most half full: owner and prefix of each slot. */
  #keys = new Int32Array(2 * FIRST_SLOTS).fill(FREE);
  #values: (V | undefined)[] = new Array<V | undefined>(FIRST_SLOTS).fill(undefined);
  #size = 0;

  /** `owner` is a whole number from 0 on. */
  get(owner: number, prefix: string): V | undefined {
    const number = this.#numbers.get(prefix);
    return number === undefined ? undefined : this.#values[this.#slotOf(owner, number)];
  }

  set(owner: number, prefix: string, value: V): void {
    let number = this.#numbers.get(prefix);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(prefix, number);
    }
    if (this.#put(owner, number, value)) this.#size++;
    if (2 * this.#size > this.#values.length) this.#grow();
  }

  /** Whether the pair is new. */
  #put(owner: number, number: number, value: V): boolean {
    const slot = this.#slotOf(owner, number);
    const isNew = this.#keys[2 * slot] === FREE;
    this.#keys[2 * slot] = owner;
    this.#keys[2 * slot + 1] = number;
    this.#values[slot] = value;
    return isNew;
  }

  /** Where the pair is, or the free slot where it belongs. */
  #slotOf(owner: number, number: number): number {
    const keys = this.#keys;
    const mask = this.#values.length - 1;
    // Two odd constants (of the golden ratio and of MurmurHash 3) spread consecutive numbers; the high bits are the best.
    const hash = Math.imul(owner, 0x9e3779b1) ^ Math.imul(number, 0x85ebca6b);
    let slot = (hash ^ (hash >>> 15)) & mask;
    while (keys[2 * slot] !== FREE && (keys[2 * slot] !== owner || keys[2 * slot + 1] !== number))
      slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = new Int32Array(2 * keys.length).fill(FREE);
    this.#values = new Array<V | undefined>(2 * values.length).fill(undefined);
    for (const [slot, value] of values.entries())
      if (value !== undefined) this.#put(keys[2 * slot] as number, keys[2 * slot + 1] as number, value);
  }
}
