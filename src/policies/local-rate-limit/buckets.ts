import { randomBytes } from "node:crypto";
import { type Hash64, halfSipHash } from "./sip-hash.ts";

/** How a bucket holds and gets tokens. */
export interface BucketRule {
  /** Tokens of a full bucket. */
  readonly maxTokens: number;
  readonly tokensPerFill: number;
  /** Milliseconds between fills. */
  readonly fillInterval: number;
}

/** Buckets under one lock. Looking through all of them takes about as long as taking the lock. */
const WAYS = 64;
const SETS = 1024;
const SECRET_WORDS = 2;
const BYTES_A_BUCKET = 2 * 4 + 3 * 8;
/** Tries before a thread that finds a lock taken sleeps; a holder is done within a microsecond unless it is not running. */
const SPINS = 200;
const SLEEP_MS = 1;

/**
 * Token buckets that all threads share, in one table of fixed size (65,536 buckets, 2 MiB). A bucket is found by a keyed
 * 64-bit hash. A full bucket and one that does not exist are the same, so the place of a full one is free for others: nobody
 * who is limited is forgotten, as long as no more than 64 buckets of one lock are limited at once, which holds up to about
 * 40,000 limited names; beyond that the one that is nearest to full gives way.
 */
export class TokenBuckets {
  readonly memory: SharedArrayBuffer;
  readonly #locks: Int32Array;
  readonly #secret: Int32Array;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  readonly #tokens: Float64Array;
  /** When the tokens were counted; advances by whole intervals. */
  readonly #filledAt: Float64Array;
  /** When the bucket will be full; a place is free from then on. */
  readonly #fullAt: Float64Array;
  readonly #sets: number;
  readonly #owner: number;
  readonly #now: () => number;
  readonly #hash: Hash64 = { low: 0, high: 0 };
  /** Of the last `take`: tokens that are left, and milliseconds until the next fill. */
  remaining = 0;
  untilFill = 0;

  /** `worker`: index of the thread, which marks the locks that it holds. `now`: milliseconds, the same in all threads. */
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

  /** Takes a token from the bucket called `name`, which begins full. False when there is none. */
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

  /** Frees what a thread that has died may have held. Only after its end. */
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
      // Nothing is counted toward the next fill of a full bucket.
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

  /** The bucket's place, or else the one that is full, or soonest will be; its `fullAt` says which, except that it is free then. */
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

/** Memory for the buckets of a process, or for fewer of them: `sets` times 64. */
export function createBuckets(sets = SETS): SharedArrayBuffer {
  const size = sets * (WAYS * BYTES_A_BUCKET + 4);
  const memory = new SharedArrayBuffer(size + SECRET_WORDS * 4);
  const secret = randomBytes(SECRET_WORDS * 4);
  const words = new Int32Array(memory, size, SECRET_WORDS);
  words[0] = secret.readInt32LE(0);
  words[1] = secret.readInt32LE(4);
  return memory;
}

/** `performance.now()` begins at another moment in each thread. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
