import { randomBytes } from "node:crypto";
import { SharedLocks } from "../limit-memory/locks.ts";
import { type Hash64, halfSipHash } from "../limit-memory/sip-hash.ts";

/** Capacity and refill of a bucket. */
export interface BucketRule {
  /** Tokens of a full bucket. */
  readonly maxTokens: number;
  readonly tokensPerFill: number;
  /** Milliseconds between fills. */
  readonly fillInterval: number;
}

/** Shares of one size. */
interface ShareSize {
  readonly shares: number;
  /** Sets of each share. */
  readonly sets: number;
}

/** How the sets of a table are used. */
export interface Layout {
  /** Sets for the buckets that only the configuration defines. */
  readonly common: number;
  /** Shares for buckets whose keys come from clients, the largest first. */
  readonly sizes: readonly [ShareSize, ShareSize];
}

/** Buckets per lock (a set). Scanning a set takes about as long as taking its lock. */
const WAYS = 64;
const BYTES_A_SET = WAYS * (2 * 4 + 3 * 8) + 4;
const BYTES_A_SHARE = 2 * 4 + 8;
/** The layout, the hash's key, and the lock of the shares, in words. */
const HEADER_WORDS = 8;

/**
 * Token buckets in memory that all threads share, in sets of 64. A bucket is found by a keyed 64-bit hash. A full bucket is equivalent
 * to a missing one, so its slot is free for others.
 */
export class BucketSets {
  readonly memory: SharedArrayBuffer;
  readonly layout: Layout;
  /** Two words per share: the hash of the limit that owns it. */
  readonly owners: Int32Array;
  /** Milliseconds: when all buckets of a share will be full. */
  readonly idleAt: Float64Array;
  readonly now: () => number;
  /** One per set, then one for the table of shares. */
  readonly #locks: SharedLocks;
  readonly #shareLock: number;
  readonly #secret: Int32Array;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  readonly #tokens: Float64Array;
  /** Milliseconds: when the tokens were last counted. Advances by whole intervals, so that fractions are not lost. */
  readonly #filledAt: Float64Array;
  /** Milliseconds: when the bucket will be full, and its slot free. */
  readonly #fullAt: Float64Array;
  /** Results of the last `take`, instead of an object for each: tokens left, milliseconds until the next refill, and when it is full. */
  remaining = 0;
  untilFill = 0;
  fullAt = 0;
  /** Since when the tokens left were counted. */
  #since = 0;
  /** Whether it dropped a bucket that was not full. */
  evicted = false;

  /** `worker`: index of the thread. `now`: milliseconds of a clock that all threads share. */
  constructor(memory: SharedArrayBuffer, worker: number, now: () => number = monotonic) {
    this.memory = memory;
    this.now = now;
    let at = 0;
    const words = (length: number): Int32Array => {
      const array = new Int32Array(memory, at, length);
      at += array.byteLength;
      return array;
    };
    const doubles = (length: number): Float64Array => {
      const array = new Float64Array(memory, at, length);
      at += array.byteLength;
      return array;
    };
    const header = words(HEADER_WORDS);
    const [common = 0, shares = 0, sets = 0, smallShares = 0, smallSets = 0] = header;
    this.layout = {
      common,
      sizes: [
        { shares, sets },
        { shares: smallShares, sets: smallSets },
      ],
    };
    this.#secret = header.subarray(5, 7);
    const all = setsOf(this.layout);
    this.idleAt = doubles(shares + smallShares);
    this.#tokens = doubles(all * WAYS);
    this.#filledAt = doubles(all * WAYS);
    this.#fullAt = doubles(all * WAYS);
    this.#low = words(all * WAYS);
    this.#high = words(all * WAYS);
    this.owners = words(2 * (shares + smallShares));
    this.#locks = new SharedLocks(words(all + 1), worker);
    this.#shareLock = all;
  }

  hash(text: string, into: Hash64): void {
    halfSipHash(this.#secret[0] as number, this.#secret[1] as number, text, into);
  }

  /**
   * Takes a token from the bucket `hash` in one of `sets` sets from `first` on; a new bucket is full. False if it is empty. If there is no
   * room for a new bucket: undefined, or, with `evict`, it replaces the bucket that will be full soonest.
   */
  take(first: number, sets: number, hash: Hash64, rule: BucketRule, evict: boolean): boolean | undefined {
    const set = first + ((hash.low >>> 0) % sets);
    this.#locks.lock(set);
    try {
      const now = this.now();
      const at = this.#find(set, hash, now, evict);
      return at === -1 ? undefined : this.#takeFrom(at, hash, rule, now);
    } finally {
      this.#locks.unlock(set);
    }
  }

  /**
   * As `take`, but takes and writes nothing. It needs no lock, so it delays no request: while another thread takes a token, it sees the
   * bucket before or after that.
   */
  peek(first: number, sets: number, hash: Hash64, rule: BucketRule, evict: boolean): boolean | undefined {
    const now = this.now();
    const at = this.#find(first + ((hash.low >>> 0) % sets), hash, now, evict);
    return at === -1 ? undefined : this.#count(at, hash, rule, now);
  }

  /** Runs `work` while no other thread can reassign shares. */
  withShares<T>(work: () => T): T {
    this.#locks.lock(this.#shareLock);
    try {
      return work();
    } finally {
      this.#locks.unlock(this.#shareLock);
    }
  }

  /** Releases the locks of a thread that died while holding them. Call only after the thread has ended. */
  releaseLocksOf(worker: number): void {
    this.#locks.releaseOf(worker);
  }

  #takeFrom(at: number, hash: Hash64, rule: BucketRule, now: number): boolean {
    const admitted = this.#count(at, hash, rule, now);
    this.#low[at] = hash.low;
    this.#high[at] = hash.high;
    this.#tokens[at] = this.remaining;
    this.#filledAt[at] = this.#since;
    this.#fullAt[at] = this.fullAt;
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
    this.fullAt =
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

function setsOf({ common, sizes }: Layout): number {
  return sizes.reduce((sum, { shares, sets }) => sum + shares * sets, common);
}

/** Memory for these sets, with a new random hash key. The system allocates it page by page, as buckets are used. */
export function bucketMemory(layout: Layout): SharedArrayBuffer {
  const [large, small] = layout.sizes;
  const all = setsOf(layout);
  const shares = large.shares + small.shares;
  const memory = new SharedArrayBuffer(HEADER_WORDS * 4 + all * BYTES_A_SET + shares * BYTES_A_SHARE + 4);
  const key = randomBytes(8);
  new Int32Array(memory, 0, HEADER_WORDS).set([
    ...[layout.common, large.shares, large.sets, small.shares, small.sets],
    ...[key.readInt32LE(0), key.readInt32LE(4)],
  ]);
  return memory;
}

/** `performance.now()` has a different origin in each thread, so it cannot be compared across threads. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
