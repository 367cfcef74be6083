import { randomBytes } from "node:crypto";
import { type Hash64, halfSipHash } from "./sip-hash.ts";

/** Shares of one size. */
interface ShareSize {
  readonly shares: number;
  /** Sets of each share. */
  readonly sets: number;
}

/** How the sets of a memory are used. */
export interface ShareLayout {
  /** Sets for the slots that only the configuration defines. */
  readonly common: number;
  /** Shares for slots whose keys come from clients, the largest first. */
  readonly sizes: readonly [ShareSize, ShareSize];
}

/** Slots of one set, among which a hash is looked for. Scanning a set takes about as long as taking a lock. */
export const WAYS = 64;
/** No share. */
export const NONE = -1;
/** The layout, the hash's key, and the number of columns, in words. */
const HEADER_WORDS = 8;
const OWNER_WORDS = 2;

/**
 * Memory of limits that all threads share: sets of slots, each found by a keyed 64-bit hash. The first sets are common; the others belong to
 * shares, each of them to one limit. What a slot holds, and when a share may change its owner, is up to the classes that extend it.
 */
export abstract class ShareTable {
  readonly memory: SharedArrayBuffer;
  /** Sets in the common memory. */
  readonly common: number;
  readonly shares: number;
  /** Numbers of each slot in tables that have one for each thread. */
  protected readonly columns: number;
  readonly #large: ShareSize;
  readonly #small: ShareSize;
  readonly #secret: Int32Array;
  /** Two words per share: the hash of the limit that owns it; 0 = it has never been claimed. */
  readonly #owners: Int32Array;
  #end = 0;

  protected constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    const header = this.words(HEADER_WORDS);
    const [common = 0, shares = 0, sets = 0, smallShares = 0, smallSets = 0] = header;
    this.common = common;
    this.#large = { shares, sets };
    this.#small = { shares: smallShares, sets: smallSets };
    this.shares = shares + smallShares;
    this.#secret = header.subarray(5, 7);
    this.columns = header[7] as number;
    this.#owners = this.words(OWNER_WORDS * this.shares);
  }

  /** The share of a limit, which it may just have claimed; NONE if all are in use. `now`: milliseconds of the table's clock. */
  abstract claim(owner: Hash64, now: number): number;

  hash(text: string, into: Hash64): void {
    halfSipHash(this.#secret[0] as number, this.#secret[1] as number, text, into);
  }

  isOwned(share: number, { low, high }: Hash64): boolean {
    return this.#owners[OWNER_WORDS * share] === low && this.#owners[OWNER_WORDS * share + 1] === high;
  }

  /** The share of a limit; NONE if no thread has claimed one for it. */
  ownedBy(owner: Hash64): number {
    for (let share = 0; share < this.shares; share++) if (this.isOwned(share, owner)) return share;
    return NONE;
  }

  protected isUnclaimed(share: number): boolean {
    return this.#owners[OWNER_WORDS * share] === 0 && this.#owners[OWNER_WORDS * share + 1] === 0;
  }

  protected give(share: number, { low, high }: Hash64): void {
    this.#owners[OWNER_WORDS * share] = low;
    this.#owners[OWNER_WORDS * share + 1] = high;
  }

  /** The common set of a hash. */
  protected setOf(hash: Hash64): number {
    return (hash.low >>> 0) % this.common;
  }

  /** The set of a hash in a share. */
  protected setIn(share: number, hash: Hash64): number {
    return this.firstSetOf(share) + ((hash.low >>> 0) % this.setsOf(share));
  }

  protected firstSetOf(share: number): number {
    const beyond = share - this.#large.shares;
    if (beyond < 0) return this.common + share * this.#large.sets;
    return this.common + this.#large.shares * this.#large.sets + beyond * this.#small.sets;
  }

  protected setsOf(share: number): number {
    return share < this.#large.shares ? this.#large.sets : this.#small.sets;
  }

  /** The share that a set belongs to; NONE for a common one. */
  protected shareOf(set: number): number {
    const own = set - this.common;
    if (own < 0) return NONE;
    const beyond = own - this.#large.shares * this.#large.sets;
    if (beyond < 0) return Math.floor(own / this.#large.sets);
    return this.#large.shares + Math.floor(beyond / this.#small.sets);
  }

  /** Sets of all. */
  protected get sets(): number {
    return this.firstSetOf(this.shares);
  }

  /** The next words of the memory. */
  protected words(length: number): Int32Array {
    const words = new Int32Array(this.memory, this.#end, length);
    this.#end += words.byteLength;
    return words;
  }

  /** The next doubles of the memory, before an odd number of words. */
  protected doubles(length: number): Float64Array {
    const doubles = new Float64Array(this.memory, this.#end, length);
    this.#end += doubles.byteLength;
    return doubles;
  }
}

/** How many sets and shares a layout has. */
export function sizeOf({ common, sizes: [large, small] }: ShareLayout): {
  readonly sets: number;
  readonly shares: number;
} {
  return {
    sets: common + large.shares * large.sets + small.shares * small.sets,
    shares: large.shares + small.shares,
  };
}

/**
 * Memory for a table with a new random hash key, and `bytes` for what its class adds. The system allocates it page by page, as slots are
 * used.
 */
export function shareMemory(layout: ShareLayout, bytes: number, columns = 0): SharedArrayBuffer {
  const { common, sizes } = layout;
  const [large, small] = sizes;
  const words = HEADER_WORDS + OWNER_WORDS * sizeOf(layout).shares;
  const memory = new SharedArrayBuffer(words * Int32Array.BYTES_PER_ELEMENT + bytes);
  const key = randomBytes(8);
  new Int32Array(memory, 0, HEADER_WORDS).set([
    ...[common, large.shares, large.sets, small.shares, small.sets],
    ...[key.readInt32LE(0), key.readInt32LE(4), columns],
  ]);
  return memory;
}
