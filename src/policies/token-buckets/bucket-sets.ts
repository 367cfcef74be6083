import { SharedLocks } from "../limit-memory/locks.ts";
import { NONE, type ShareLayout, ShareTable, shareMemory, sizeOf, WAYS } from "../limit-memory/share-table.ts";
import type { Hash64 } from "../limit-memory/sip-hash.ts";

/** Capacity and refill of a bucket. */
export interface BucketRule {
  /** Tokens of a full bucket. */
  readonly maxTokens: number;
  readonly tokensPerFill: number;
  /** Milliseconds between fills. */
  readonly fillInterval: number;
}

/** Hash, tokens and two times for each slot, and a lock. */
const BYTES_A_SET = WAYS * (2 * 4 + 3 * 8) + 4;
/** Milliseconds for which a share is kept for a limit that has claimed but not yet used it. */
const RESERVED_MS = 1000;

/**
 * Token buckets in memory that all threads share, in sets of 64. A full bucket is equivalent to a missing one, so its slot is free for
 * others, and so is a share whose buckets are all full. Each set has a lock; a share changes its owner only while nothing in it counts.
 */
export class BucketSets extends ShareTable {
  /** Milliseconds: when all buckets of a share will be full. */
  readonly #idleAt: Float64Array;
  readonly now: () => number;
  /** One per set, then one for the table of shares. */
  readonly #locks: SharedLocks;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  readonly #tokens: Float64Array;
  /** Milliseconds: when the tokens were last counted. Advances by whole intervals, so that fractions are not lost. */
  readonly #filledAt: Float64Array;
  /** Milliseconds: when the bucket will be full, and its slot free. */
  readonly #fullAt: Float64Array;
  /** Results of the last `take`, instead of an object for each: tokens left, and milliseconds until the next refill. */
  remaining = 0;
  untilFill = 0;
  /** When that bucket will be full. */
  #willBeFullAt = 0;
  /** Since when the tokens left were counted. */
  #since = 0;
  /** Whether it dropped a bucket that was not full. */
  evicted = false;

  /** `worker`: index of the thread. `now`: milliseconds of a clock that all threads share. */
  constructor(memory: SharedArrayBuffer, worker: number, now: () => number = monotonic) {
    super(memory);
    this.now = now;
    const slots = this.sets * WAYS;
    this.#idleAt = this.doubles(this.shares);
    this.#tokens = this.doubles(slots);
    this.#filledAt = this.doubles(slots);
    this.#fullAt = this.doubles(slots);
    this.#low = this.words(slots);
    this.#high = this.words(slots);
    this.#locks = new SharedLocks(this.words(this.sets + 1), worker);
  }

  /** Takes a token from a bucket in the common memory; a new one is full, and replaces in a full set the one that will be full soonest. */
  take(hash: Hash64, rule: BucketRule): boolean {
    return this.#take(this.setOf(hash), hash, rule, true) === true;
  }

  /** Takes a token from a bucket in a share; undefined if there is no room for a new one. */
  takeIn(share: number, hash: Hash64, rule: BucketRule): boolean | undefined {
    const admitted = this.#take(this.setIn(share, hash), hash, rule, false);
    if (admitted !== undefined && (this.#idleAt[share] as number) < this.#willBeFullAt)
      this.#idleAt[share] = this.#willBeFullAt;
    return admitted;
  }

  /**
   * What `take` would return. It takes nothing and needs no lock, so it delays no request: while another thread takes a token, it sees the
   * bucket before or after that.
   */
  peek(hash: Hash64, rule: BucketRule): boolean {
    return this.#peek(this.setOf(hash), hash, rule, true) === true;
  }

  /** What `takeIn` would return. */
  peekIn(share: number, hash: Hash64, rule: BucketRule): boolean | undefined {
    return this.#peek(this.setIn(share, hash), hash, rule, false);
  }

  get hasIdleShare(): boolean {
    const now = this.now();
    return this.#idleAt.some((at) => at <= now);
  }

  claim(owner: Hash64, now: number): number {
    this.#locks.lock(this.sets);
    try {
      const owned = this.ownedBy(owner);
      if (owned !== NONE) return owned;
      const idle = this.#idleAt.findIndex((at) => at <= now);
      if (idle === NONE) return NONE;
      // Its old buckets stay: they are full, and their hashes differ from those of this limit's keys.
      this.give(idle, owner);
      this.#idleAt[idle] = now + RESERVED_MS;
      return idle;
    } finally {
      this.#locks.unlock(this.sets);
    }
  }

  /** Releases the locks of a thread that died while holding them. Call only after the thread has ended. */
  releaseLocksOf(worker: number): void {
    this.#locks.releaseOf(worker);
  }

  /** In a full set: undefined, or with `evict` from a new bucket in place of another. */
  #take(set: number, hash: Hash64, rule: BucketRule, evict: boolean): boolean | undefined {
    this.#locks.lock(set);
    try {
      const now = this.now();
      const at = this.#find(set, hash, now, evict);
      return at === -1 ? undefined : this.#takeFrom(at, hash, rule, now);
    } finally {
      this.#locks.unlock(set);
    }
  }

  #peek(set: number, hash: Hash64, rule: BucketRule, evict: boolean): boolean | undefined {
    const now = this.now();
    const at = this.#find(set, hash, now, evict);
    return at === -1 ? undefined : this.#count(at, hash, rule, now);
  }

  #takeFrom(at: number, hash: Hash64, rule: BucketRule, now: number): boolean {
    const admitted = this.#count(at, hash, rule, now);
    this.#low[at] = hash.low;
    this.#high[at] = hash.high;
    this.#tokens[at] = this.remaining;
    this.#filledAt[at] = this.#since;
    this.#fullAt[at] = this.#willBeFullAt;
    return admitted;
  }

  /** Whether the bucket has a token, and the results as if it were taken. A slot of another bucket is one for a new bucket. */
  #count(
    at: number,
    { low, high }: Hash64,
    { maxTokens, tokensPerFill, fillInterval }: BucketRule,
    now: number,
  ): boolean {
    let tokens = maxTokens;
    let filledAt = now;
    if ((this.#fullAt[at] as number) > now && this.#low[at] === low && this.#high[at] === high) {
      const since = this.#filledAt[at] as number;
      const fills = Math.floor((now - since) / fillInterval);
      tokens = Math.min(maxTokens, (this.#tokens[at] as number) + fills * tokensPerFill);
      // A full bucket does not accumulate time toward the next refill.
      if (tokens < maxTokens) filledAt = since + fills * fillInterval;
    }
    const admitted = tokens >= 1;
    if (admitted) tokens--;
    const missing = maxTokens - tokens;
    this.#willBeFullAt =
      missing === 0
        ? now
        : tokensPerFill === 0
          ? Number.POSITIVE_INFINITY
          : filledAt + Math.ceil(missing / tokensPerFill) * fillInterval;
    this.#since = filledAt;
    this.remaining = tokens;
    // Never more than the interval: a sum with the time since boot would be rounded.
    this.untilFill = fillInterval - (now - filledAt);
    return admitted;
  }

  /** The slot of the bucket, otherwise a free slot. In a full set: the slot that becomes free first with `evict`, else -1. */
  #find(set: number, { low, high }: Hash64, now: number, evict: boolean): number {
    const first = set * WAYS;
    let soonest = first;
    this.evicted = false;
    for (let at = first; at < first + WAYS; at++) {
      if (this.#low[at] === low && this.#high[at] === high) return at;
      if ((this.#fullAt[at] as number) < (this.#fullAt[soonest] as number)) soonest = at;
    }
    if ((this.#fullAt[soonest] as number) > now) {
      if (!evict) return -1;
      this.evicted = true;
    }
    return soonest;
  }
}

/** Memory for the buckets of this layout. */
export function bucketMemory(layout: ShareLayout): SharedArrayBuffer {
  const { sets, shares } = sizeOf(layout);
  return shareMemory(layout, sets * BYTES_A_SET + shares * Float64Array.BYTES_PER_ELEMENT + 4);
}

/** `performance.now()` has a different origin in each thread, so it cannot be compared across threads. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
