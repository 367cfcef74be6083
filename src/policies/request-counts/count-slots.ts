import { randomBytes } from "node:crypto";
import { SharedLocks } from "../limit-memory/locks.ts";
import { type Hash64, halfSipHash } from "../limit-memory/sip-hash.ts";

/** Shares of one size. */
interface ShareSize {
  readonly shares: number;
  /** Sets of each share. */
  readonly sets: number;
}

/** How the sets of the memory are used. */
export interface CountLayout {
  /** Threads that count, each in a column of its own. */
  readonly workers: number;
  /** Sets for the counts that only the configuration defines. */
  readonly common: number;
  /** Shares for counts whose keys come from clients, the largest first. */
  readonly sizes: readonly [ShareSize, ShareSize];
}

/** Counts of one set, among which a hash is looked for. */
const WAYS = 64;
/** The layout and the hash's key, in words. */
const HEADER_WORDS = 8;

/** Results of an attempt to count a request; others are the slot that counts it. */
export const AT_LIMIT = -1;
export const NO_ROOM = -2;
export const NOT_OWNED = -3;
/** No share. */
export const NONE = -1;

/**
 * Counts of requests in memory that all threads share. A count is found by a keyed 64-bit hash, in a set of 64 slots, and consists of one
 * number for each thread, which only that thread changes: the count is their sum, and what a dead thread has counted is its column.
 * So nothing has to be repaired, wherever a thread dies. A count of 0 is equivalent to a missing one: its slot is free for others. To count
 * a request takes a lock, so that threads together never exceed a limit; to end it takes none.
 */
export class CountSlots {
  readonly memory: SharedArrayBuffer;
  readonly layout: CountLayout;
  readonly shares: number;
  readonly #worker: number;
  readonly #secret: Int32Array;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  /** For each slot a number of each thread. */
  readonly #counts: Int32Array;
  /** Two words per share: the hash of the limit that owns it; 0 = it has never been claimed. */
  readonly #owners: Int32Array;
  /** For each share a number of each thread: the sum over its slots. */
  readonly #shareCounts: Int32Array;
  /** One per set of the common memory, one per share, and one for claims. */
  readonly #locks: SharedLocks;
  /** The count after the last attempt, with the request if it is counted. */
  count = 0;

  /** `worker`: index of the thread, whose column it changes. */
  constructor(memory: SharedArrayBuffer, worker: number) {
    this.memory = memory;
    this.#worker = worker;
    let at = 0;
    const words = (length: number): Int32Array => {
      const array = new Int32Array(memory, at, length);
      at += array.byteLength;
      return array;
    };
    const header = words(HEADER_WORDS);
    const [workers = 0, common = 0, shares = 0, sets = 0, smallShares = 0, smallSets = 0] = header;
    const sizes = [
      { shares, sets },
      { shares: smallShares, sets: smallSets },
    ] as const;
    this.layout = { workers, common, sizes };
    this.#secret = header.subarray(6, 8);
    this.shares = sharesOf(this.layout);
    const slots = setsOf(this.layout) * WAYS;
    this.#low = words(slots);
    this.#high = words(slots);
    this.#counts = words(slots * workers);
    this.#owners = words(2 * this.shares);
    this.#shareCounts = words(this.shares * workers);
    this.#locks = new SharedLocks(words(common + this.shares + 1), worker);
  }

  hash(text: string, into: Hash64): void {
    halfSipHash(this.#secret[0] as number, this.#secret[1] as number, text, into);
  }

  /** Counts a request in the common memory: the slot, AT_LIMIT if `max` are counted, or NO_ROOM. */
  acquire(hash: Hash64, max: number): number {
    const set = (hash.low >>> 0) % this.layout.common;
    this.#locks.lock(set);
    try {
      return this.#take(set, NONE, hash, max);
    } finally {
      this.#locks.unlock(set);
    }
  }

  /** Counts a request in a share; NOT_OWNED if it belongs to another limit than `owner` by now. */
  acquireIn(share: number, owner: Hash64, hash: Hash64, max: number): number {
    const lock = this.layout.common + share;
    this.#locks.lock(lock);
    try {
      return this.isOwned(share, owner) ? this.#take(this.#setIn(share, hash), share, hash, max) : NOT_OWNED;
    } finally {
      this.#locks.unlock(lock);
    }
  }

  /** What `acquire` would return, without an effect and without a lock. */
  peek(hash: Hash64, max: number): number {
    return this.#look((hash.low >>> 0) % this.layout.common, hash, max);
  }

  /** What `acquireIn` would return for the owner of the share. */
  peekIn(share: number, hash: Hash64, max: number): number {
    return this.#look(this.#setIn(share, hash), hash, max);
  }

  /** The request that is counted in this slot has ended. */
  release(slot: number): void {
    const column = slot * this.layout.workers + this.#worker;
    Atomics.sub(this.#counts, column, 1);
    const share = this.#shareOf(slot);
    // Last, so that a share with counts is never taken for idle.
    if (share !== NONE) Atomics.sub(this.#shareCounts, share * this.layout.workers + this.#worker, 1);
  }

  isOwned(share: number, { low, high }: Hash64): boolean {
    return this.#owners[2 * share] === low && this.#owners[2 * share + 1] === high;
  }

  /** The share of a limit; NONE if it has none. */
  ownedBy(owner: Hash64): number {
    for (let share = 0; share < this.shares; share++) if (this.isOwned(share, owner)) return share;
    return NONE;
  }

  /** Whether some share belongs to nobody, or counts nothing. */
  get hasIdleShare(): boolean {
    for (let share = 0; share < this.shares; share++) if (this.#isUnclaimed(share) || this.#isIdle(share)) return true;
    return false;
  }

  /**
   * The share of a limit, which it may just have claimed: the first that nobody has claimed, or else one that counts nothing. The search
   * for those begins at a place of the limit, so that limits with few requests do not claim the same share from each other. NONE if all
   * shares are in use.
   */
  claim(owner: Hash64): number {
    const claims = this.layout.common + this.shares;
    this.#locks.lock(claims);
    try {
      const owned = this.ownedBy(owner);
      if (owned !== NONE) return owned;
      for (let share = 0; share < this.shares; share++)
        if (this.#isUnclaimed(share) && this.#giveIfIdle(share, owner)) return share;
      const first = (owner.low >>> 0) % Math.max(1, this.shares);
      for (let i = 0; i < this.shares; i++) {
        const share = (first + i) % this.shares;
        if (this.#isIdle(share) && this.#giveIfIdle(share, owner)) return share;
      }
      return NONE;
    } finally {
      this.#locks.unlock(claims);
    }
  }

  /** Ends the requests of a thread that has died, and releases its locks. Call only after the thread has ended. */
  endWorker(worker: number): void {
    const { workers, common } = this.layout;
    const clear = (from: number, to: number): void => {
      for (let slot = from; slot < to; slot++) {
        const column = slot * workers + worker;
        // Memory that was never written stays unallocated.
        if (this.#counts[column] !== 0) Atomics.store(this.#counts, column, 0);
      }
    };
    clear(0, common * WAYS);
    for (let share = 0; share < this.shares; share++) {
      if (Atomics.load(this.#shareCounts, share * workers + worker) === 0) continue;
      const { first, sets } = this.#placeOf(share);
      clear(first * WAYS, (first + sets) * WAYS);
      Atomics.store(this.#shareCounts, share * workers + worker, 0);
    }
    this.#locks.releaseOf(worker);
  }

  /** Needs the lock of the set or share. */
  #take(set: number, share: number, hash: Hash64, max: number): number {
    const slot = this.#look(set, hash, max);
    if (slot < 0) return slot;
    const { workers } = this.layout;
    this.#low[slot] = hash.low;
    this.#high[slot] = hash.high;
    if (share !== NONE) Atomics.add(this.#shareCounts, share * workers + this.#worker, 1);
    Atomics.add(this.#counts, slot * workers + this.#worker, 1);
    return slot;
  }

  /** The slot of the hash if it is below `max`, or a free one; sets `count` as if the request were counted. */
  #look(set: number, { low, high }: Hash64, max: number): number {
    const first = set * WAYS;
    for (let slot = first; slot < first + WAYS; slot++) {
      if (this.#low[slot] !== low || this.#high[slot] !== high) continue;
      const count = this.#sum(this.#counts, slot);
      this.count = Math.min(count + 1, Math.max(count, max));
      return count < max ? slot : AT_LIMIT;
    }
    this.count = 1;
    for (let slot = first; slot < first + WAYS; slot++) if (this.#sum(this.#counts, slot) === 0) return slot;
    return NO_ROOM;
  }

  #sum(numbers: Int32Array, at: number): number {
    const { workers } = this.layout;
    let sum = 0;
    for (let i = at * workers; i < (at + 1) * workers; i++) sum += Atomics.load(numbers, i);
    return sum;
  }

  #isUnclaimed(share: number): boolean {
    return this.#owners[2 * share] === 0 && this.#owners[2 * share + 1] === 0;
  }

  #isIdle(share: number): boolean {
    return this.#sum(this.#shareCounts, share) === 0;
  }

  /** Its lock keeps another thread from counting in it meanwhile. */
  #giveIfIdle(share: number, { low, high }: Hash64): boolean {
    const lock = this.layout.common + share;
    this.#locks.lock(lock);
    try {
      if (!this.#isIdle(share)) return false;
      this.#owners[2 * share] = low;
      this.#owners[2 * share + 1] = high;
      return true;
    } finally {
      this.#locks.unlock(lock);
    }
  }

  #setIn(share: number, hash: Hash64): number {
    const { first, sets } = this.#placeOf(share);
    return first + ((hash.low >>> 0) % sets);
  }

  #placeOf(share: number): { readonly first: number; readonly sets: number } {
    const { common, sizes } = this.layout;
    const [large, small] = sizes;
    const beyond = share - large.shares;
    if (beyond < 0) return { first: common + share * large.sets, sets: large.sets };
    return { first: common + large.shares * large.sets + beyond * small.sets, sets: small.sets };
  }

  #shareOf(slot: number): number {
    const { common, sizes } = this.layout;
    const [large, small] = sizes;
    const set = Math.floor(slot / WAYS) - common;
    if (set < 0) return NONE;
    const beyond = set - large.shares * large.sets;
    return beyond < 0 ? Math.floor(set / large.sets) : large.shares + Math.floor(beyond / small.sets);
  }
}

function setsOf({ common, sizes }: CountLayout): number {
  return sizes.reduce((sum, { shares, sets }) => sum + shares * sets, common);
}

function sharesOf({ sizes }: CountLayout): number {
  return sizes.reduce((sum, { shares }) => sum + shares, 0);
}

/** Memory for these counts, with a new random hash key. The system allocates it page by page, as counts are used. */
export function countMemory(layout: CountLayout): SharedArrayBuffer {
  const { workers, common, sizes } = layout;
  const [large, small] = sizes;
  const slots = setsOf(layout) * WAYS;
  const shares = sharesOf(layout);
  const words = HEADER_WORDS + slots * (2 + workers) + shares * (2 + workers) + common + shares + 1;
  const memory = new SharedArrayBuffer(words * Int32Array.BYTES_PER_ELEMENT);
  const key = randomBytes(8);
  new Int32Array(memory, 0, HEADER_WORDS).set([
    ...[workers, common, large.shares, large.sets, small.shares, small.sets],
    ...[key.readInt32LE(0), key.readInt32LE(4)],
  ]);
  return memory;
}
