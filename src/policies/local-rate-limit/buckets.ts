import { randomBytes } from "node:crypto";
import { type Hash64, halfSipHash } from "./sip-hash.ts";

/** Capacity and refill of a bucket. */
export interface BucketRule {
  /** Tokens of a full bucket. */
  readonly maxTokens: number;
  readonly tokensPerFill: number;
  /** Milliseconds between fills. */
  readonly fillInterval: number;
}

/** Buckets per lock (a set). Scanning a set takes about as long as taking its lock. */
const WAYS = 64;
const SETS = 1024;
const SECRET_WORDS = 2;
const BYTES_A_BUCKET = 2 * 4 + 3 * 8;
/** Attempts before a thread sleeps on a lock. The holder needs less than a microsecond unless it is descheduled. */
const SPINS = 200;
const SLEEP_MS = 1;

/**
 * Token buckets that all threads share, in one table of fixed size (65,536 buckets, 2 MiB): clients that choose their key cannot
 * make it grow. A bucket is found by a keyed 64-bit hash. A full bucket is equivalent to a missing one, so its slot is free for
 * others. A client that is being limited keeps its bucket as long as at most 64 buckets of one set are in use, which holds up to
 * about 40,000 limited names; beyond that, the bucket closest to full is evicted.
 */
export class TokenBuckets {
  readonly memory: SharedArrayBuffer;
  readonly #locks: Int32Array;
  readonly #secret: Int32Array;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  readonly #tokens: Float64Array;
  /** Milliseconds: when the tokens were last counted. Advances by whole intervals, so that fractions are not lost. */
  readonly #filledAt: Float64Array;
  /** Milliseconds: when the bucket will be full, and its slot free. */
  readonly #fullAt: Float64Array;
  readonly #sets: number;
  readonly #owner: number;
  readonly #now: () => number;
  readonly #hash: Hash64 = { low: 0, high: 0 };
  /** Results of the last `take`, instead of an object for each: tokens left, and milliseconds until the next refill. */
  remaining = 0;
  untilFill = 0;

  /** `worker`: index of the thread, written into the locks that it holds. `now`: milliseconds of a clock that all threads share. */
  constructor(memory: SharedArrayBuffer = createBuckets(), worker = 0, now: () => number = monotonic) {
    this.memory = memory;
    this.#owner = worker + 1;
    this.#now = now;
    const sets = Math.floor(memory.byteLength / (WAYS * BYTES_A_BUCKET + 4));
    const buckets = sets * WAYS;
    this.#sets = sets;
    let at = 0;
    const doubles = (): Float64Array => {
      const array = new Float64Array(memory, at, buckets);
      at += array.byteLength;
      return array;
    };
    const words = (length: number): Int32Array => {
      const array = new Int32Array(memory, at, length);
      at += array.byteLength;
      return array;
    };
    this.#tokens = doubles();
    this.#filledAt = doubles();
    this.#fullAt = doubles();
    this.#low = words(buckets);
    this.#high = words(buckets);
    this.#locks = words(sets);
    this.#secret = words(SECRET_WORDS);
  }

  /** Takes a token from the bucket `name`; a new bucket is full. False if it is empty. */
  take(name: string, rule: BucketRule): boolean {
    const hash = this.#hash;
    halfSipHash(this.#secret[0] as number, this.#secret[1] as number, name, hash);
    const set = (hash.low >>> 0) % this.#sets;
    this.#lock(set);
    try {
      return this.#takeFrom(set, hash, rule, this.#now());
    } finally {
      this.#unlock(set);
    }
  }

  /** Releases the locks of a thread that died while holding them. Call only after the thread has ended. */
  releaseLocksOf(worker: number): void {
    for (let set = 0; set < this.#sets; set++)
      if (Atomics.compareExchange(this.#locks, set, worker + 1, 0) === worker + 1) Atomics.notify(this.#locks, set);
  }

  #takeFrom(set: number, hash: Hash64, rule: BucketRule, now: number): boolean {
    const { maxTokens, tokensPerFill, fillInterval } = rule;
    const at = this.#find(set, hash, now);
    let tokens = maxTokens;
    let filledAt = now;
    if ((this.#fullAt[at] as number) > now) {
      const since = this.#filledAt[at] as number;
      const fills = Math.floor((now - since) / fillInterval);
      tokens = Math.min(maxTokens, (this.#tokens[at] as number) + fills * tokensPerFill);
      // A full bucket does not accumulate time toward the next refill.
      if (tokens < maxTokens) filledAt = since + fills * fillInterval;
    }
    const admitted = tokens >= 1;
    if (admitted) tokens--;
    this.#low[at] = hash.low;
    this.#high[at] = hash.high;
    this.#tokens[at] = tokens;
    this.#filledAt[at] = filledAt;
    const missing = maxTokens - tokens;
    this.#fullAt[at] =
      missing === 0
        ? now
        : tokensPerFill === 0
          ? Number.POSITIVE_INFINITY
          : filledAt + Math.ceil(missing / tokensPerFill) * fillInterval;
    this.remaining = tokens;
    this.untilFill = filledAt + fillInterval - now;
    return admitted;
  }

  /** The slot of the bucket, or else the slot of the set that is free or free soonest, marked as full. */
  #find(set: number, { low, high }: Hash64, now: number): number {
    const first = set * WAYS;
    let soonest = first;
    for (let at = first; at < first + WAYS; at++) {
      if (this.#low[at] === low && this.#high[at] === high) return at;
      if ((this.#fullAt[at] as number) < (this.#fullAt[soonest] as number)) soonest = at;
    }
    this.#fullAt[soonest] = now;
    return soonest;
  }

  #lock(set: number): void {
    const locks = this.#locks;
    for (let tries = 1; ; tries++) {
      if (Atomics.compareExchange(locks, set, 0, this.#owner) === 0) return;
      const holder = Atomics.load(locks, set);
      if (tries > SPINS && holder !== 0) Atomics.wait(locks, set, holder, SLEEP_MS);
    }
  }

  #unlock(set: number): void {
    Atomics.store(this.#locks, set, 0);
  }
}

/** Memory for `sets` × 64 buckets, with a new random hash key. One per process; tests use fewer sets. */
export function createBuckets(sets = SETS): SharedArrayBuffer {
  const size = sets * (WAYS * BYTES_A_BUCKET + 4);
  const memory = new SharedArrayBuffer(size + SECRET_WORDS * 4);
  const secret = randomBytes(SECRET_WORDS * 4);
  const words = new Int32Array(memory, size, SECRET_WORDS);
  words[0] = secret.readInt32LE(0);
  words[1] = secret.readInt32LE(4);
  return memory;
}

/** `performance.now()` has a different origin in each thread, so it cannot be compared across threads. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
