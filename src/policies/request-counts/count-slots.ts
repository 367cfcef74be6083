import { SharedLocks } from "../limit-memory/locks.ts";
import { NONE, type ShareLayout, ShareTable, shareMemory, sizeOf, WAYS } from "../limit-memory/share-table.ts";
import type { Hash64 } from "../limit-memory/sip-hash.ts";

/** Results of an attempt to count a request; others are the slot that counts it. */
export const AT_LIMIT = -1;
export const NO_ROOM = -2;
export const NOT_OWNED = -3;

/**
 * Counts of requests in memory that all threads share. A count is found by a keyed 64-bit hash, in a set of 64 slots, and consists of one
 * number for each thread, which only that thread changes: the count is their sum, and what a dead thread has counted is its column.
 * So nothing has to be repaired, wherever a thread dies. A count of 0 is equivalent to a missing one: its slot is free for others. To count
 * a request takes a lock, so that threads together never exceed a limit; to end it takes none.
 */
export class CountSlots extends ShareTable {
  readonly #worker: number;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  /** For each slot a number of each thread. */
  readonly #counts: Int32Array;
  /** For each share a number of each thread: the sum over its slots. */
  readonly #shareCounts: Int32Array;
  /** One per set of the common memory, one per share, and one for claims. */
  readonly #locks: SharedLocks;
  /** The count after the last attempt, with the request if it is counted. */
  count = 0;

  /** `worker`: index of the thread, whose column it changes. */
  constructor(memory: SharedArrayBuffer, worker: number) {
    super(memory);
    this.#worker = worker;
    const slots = this.sets * WAYS;
    this.#low = this.words(slots);
    this.#high = this.words(slots);
    this.#counts = this.words(slots * this.columns);
    this.#shareCounts = this.words(this.shares * this.columns);
    this.#locks = new SharedLocks(this.words(this.common + this.shares + 1), worker);
  }

  /** Counts a request in the common memory: the slot, AT_LIMIT if `max` are counted, or NO_ROOM. */
  acquire(hash: Hash64, max: number): number {
    const set = this.setOf(hash);
    this.#locks.lock(set);
    try {
      return this.#take(set, NONE, hash, max);
    } finally {
      this.#locks.unlock(set);
    }
  }

  /** Counts a request in a share; NOT_OWNED if it belongs to another limit than `owner` by now. */
  acquireIn(share: number, owner: Hash64, hash: Hash64, max: number): number {
    const lock = this.common + share;
    this.#locks.lock(lock);
    try {
      return this.isOwned(share, owner) ? this.#take(this.setIn(share, hash), share, hash, max) : NOT_OWNED;
    } finally {
      this.#locks.unlock(lock);
    }
  }

  /** What `acquire` would return, without an effect and without a lock. */
  peek(hash: Hash64, max: number): number {
    return this.#look(this.setOf(hash), hash, max);
  }

  /** What `acquireIn` would return for the owner of the share. */
  peekIn(share: number, hash: Hash64, max: number): number {
    return this.#look(this.setIn(share, hash), hash, max);
  }

  /** The request that is counted in this slot has ended. */
  release(slot: number): void {
    Atomics.sub(this.#counts, slot * this.columns + this.#worker, 1);
    const share = this.shareOf(Math.floor(slot / WAYS));
    // Last, so that a share with counts is never taken for idle.
    if (share !== NONE) Atomics.sub(this.#shareCounts, share * this.columns + this.#worker, 1);
  }

  /** Whether some share belongs to nobody, or counts nothing. */
  get hasIdleShare(): boolean {
    for (let share = 0; share < this.shares; share++) if (this.isUnclaimed(share) || this.#isIdle(share)) return true;
    return false;
  }

  /**
   * The share of a limit, which it may just have claimed: the first that nobody has claimed, or else one that counts nothing. The search
   * for those begins at a place of the limit, so that limits with few requests do not claim the same share from each other. NONE if all
   * shares are in use.
   */
  claim(owner: Hash64): number {
    const claims = this.common + this.shares;
    this.#locks.lock(claims);
    try {
      const owned = this.ownedBy(owner);
      if (owned !== NONE) return owned;
      for (let share = 0; share < this.shares; share++)
        if (this.isUnclaimed(share) && this.#giveIfIdle(share, owner)) return share;
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
    const clear = (from: number, to: number): void => {
      for (let slot = from; slot < to; slot++) {
        const column = slot * this.columns + worker;
        // Memory that was never written stays unallocated.
        if (this.#counts[column] !== 0) Atomics.store(this.#counts, column, 0);
      }
    };
    clear(0, this.common * WAYS);
    for (let share = 0; share < this.shares; share++) {
      const column = share * this.columns + worker;
      if (Atomics.load(this.#shareCounts, column) === 0) continue;
      const first = this.firstSetOf(share);
      clear(first * WAYS, (first + this.setsOf(share)) * WAYS);
      Atomics.store(this.#shareCounts, column, 0);
    }
    this.#locks.releaseOf(worker);
  }

  /** Needs the lock of the set or share. */
  #take(set: number, share: number, hash: Hash64, max: number): number {
    const slot = this.#look(set, hash, max);
    if (slot < 0) return slot;
    this.#low[slot] = hash.low;
    this.#high[slot] = hash.high;
    if (share !== NONE) Atomics.add(this.#shareCounts, share * this.columns + this.#worker, 1);
    Atomics.add(this.#counts, slot * this.columns + this.#worker, 1);
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
    const { columns } = this;
    let sum = 0;
    for (let i = at * columns; i < (at + 1) * columns; i++) sum += Atomics.load(numbers, i);
    return sum;
  }

  #isIdle(share: number): boolean {
    return this.#sum(this.#shareCounts, share) === 0;
  }

  /** Its lock keeps another thread from counting in it meanwhile. */
  #giveIfIdle(share: number, owner: Hash64): boolean {
    const lock = this.common + share;
    this.#locks.lock(lock);
    try {
      if (!this.#isIdle(share)) return false;
      this.give(share, owner);
      return true;
    } finally {
      this.#locks.unlock(lock);
    }
  }
}

/** Memory for the counts of so many threads, each in a column of its own. */
export function countMemory(workers: number, layout: ShareLayout): SharedArrayBuffer {
  const { sets, shares } = sizeOf(layout);
  const words = sets * WAYS * (2 + workers) + shares * workers + layout.common + shares + 1;
  return shareMemory(layout, words * Int32Array.BYTES_PER_ELEMENT, workers);
}
