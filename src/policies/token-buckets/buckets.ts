import type { Count, Metrics } from "../../telemetry/metrics.ts";
import type { Hash64 } from "../limit-memory/sip-hash.ts";
import { type BucketRule, BucketSets, bucketMemory, type Layout } from "./bucket-sets.ts";

export type { BucketRule } from "./bucket-sets.ts";

/**
 * 65,536 buckets that only the configuration defines: those of limits without a key, and the shared bucket of each limit. Then 64 shares of
 * 32,768 buckets, and 2,048 of 256: 84 MiB of address space, which the system allocates as it is used.
 */
const LAYOUT: Layout = {
  common: 1024,
  sizes: [
    { shares: 64, sets: 512 },
    { shares: 2048, sets: 4 },
  ],
};

/** Milliseconds before a limit without a share looks for one again. */
const RETRY_MS = 1000;
/** Milliseconds for which a share is kept for a limit that has claimed but not yet used it. */
const RESERVED_MS = 1000;
const NONE = -1;

type BucketCounters = Pick<Metrics, "count">;

/**
 * The token buckets of a process: all threads see the same ones, in a table of fixed size. Each limit whose clients choose keys has its own
 * share of it, so that a flood of keys affects no other limit. While the share is full, requests with further keys are counted together, in
 * one bucket, as if they had no key: limited clients stay limited, and new ones cannot bypass the limit. A share
 * belongs to a limit until all its buckets are full; a full bucket is equivalent to a missing one. Larger shares are assigned first.
 */
export class TokenBuckets {
  readonly memory: SharedArrayBuffer;
  readonly #sets: BucketSets;
  readonly #counters: BucketCounters | undefined;
  readonly #taking: boolean;

  /** `worker`: index of the thread. `now`: milliseconds of a clock that all threads share. `taking` false: `take` takes nothing, as for rehearsals. */
  constructor(memory = createBuckets(), worker = 0, counters?: BucketCounters, now?: () => number, taking = true) {
    this.memory = memory;
    this.#sets = new BucketSets(memory, worker, now);
    this.#counters = counters;
    this.#taking = taking;
  }

  /** The buckets of the limit `name`: the same ones in every thread, and after a reload. */
  of(name: string): LimitBuckets {
    return new LimitBuckets(this.#sets, name, this.#counters, this.#taking);
  }

  /** Releases the locks of a thread that died while holding them. Call only after the thread has ended. */
  releaseLocksOf(worker: number): void {
    this.#sets.releaseLocksOf(worker);
  }
}

export class LimitBuckets {
  readonly #sets: BucketSets;
  readonly #name: string;
  readonly #counters: BucketCounters | undefined;
  readonly #taking: boolean;
  /** Identifies the limit in the table of shares. */
  readonly #id: Hash64 = { low: 0, high: 0 };
  readonly #hash: Hash64 = { low: 0, high: 0 };
  #overflows: Count | undefined;
  #share = NONE;
  #first = 0;
  #setCount = 0;
  /** Time in milliseconds before which the limit does not look for a share. */
  #lookAt = 0;

  constructor(sets: BucketSets, name: string, counters: BucketCounters | undefined, taking: boolean) {
    this.#sets = sets;
    this.#name = name;
    this.#counters = counters;
    this.#taking = taking;
    sets.hash(name, this.#id);
  }

  /** Tokens left after the last `take`. */
  get remaining(): number {
    return this.#sets.remaining;
  }

  /** Milliseconds until the next refill, as of the last `take`. */
  get untilFill(): number {
    return this.#sets.untilFill;
  }

  /** Takes a token from the bucket of `key`, or from that of all requests without one. False if it is empty. */
  take(rule: BucketRule, key?: string): boolean {
    if (key === undefined) return this.#takeCommon(this.#name, rule);
    if (!this.#taking) return this.#peek(rule, key);
    const sets = this.#sets;
    if (this.#hasShare()) {
      sets.hash(`${this.#name} =${key}`, this.#hash);
      const admitted = sets.take(this.#first, this.#setCount, this.#hash, rule, false);
      if (admitted !== undefined) {
        const { idleAt } = sets;
        if ((idleAt[this.#share] as number) < sets.fullAt) idleAt[this.#share] = sets.fullAt;
        return admitted;
      }
    }
    this.#overflows ??= this.#counters?.count("local_rate_limit_overflow_total", this.#name);
    if (this.#overflows !== undefined) this.#overflows.count++;
    return this.#takeCommon(`${this.#name} overflow`, rule);
  }

  #takeCommon(name: string, rule: BucketRule): boolean {
    const sets = this.#sets;
    sets.hash(name, this.#hash);
    if (!this.#taking) return sets.peek(0, sets.layout.common, this.#hash, rule, true) === true;
    const admitted = sets.take(0, sets.layout.common, this.#hash, rule, true);
    if (sets.evicted && this.#counters !== undefined) this.#counters.count("local_rate_limit_evictions_total").count++;
    return admitted === true;
  }

  /** A limit that would claim an idle share has a full bucket there, as a new one in the memory for all. */
  #peek(rule: BucketRule, key: string): boolean {
    const sets = this.#sets;
    this.#share = this.#owned();
    if (this.#share === NONE) {
      const name = sets.idleAt.some((at) => at <= sets.now()) ? `${this.#name} =${key}` : `${this.#name} overflow`;
      return this.#takeCommon(name, rule);
    }
    this.#locate();
    sets.hash(`${this.#name} =${key}`, this.#hash);
    const admitted = sets.peek(this.#first, this.#setCount, this.#hash, rule, false);
    return admitted ?? this.#takeCommon(`${this.#name} overflow`, rule);
  }

  /** Another limit may have claimed the share since it became idle. Then this finds or claims another one, if possible. */
  #hasShare(): boolean {
    const { owners, now } = this.#sets;
    const { low, high } = this.#id;
    const share = this.#share;
    if (share !== NONE && owners[2 * share] === low && owners[2 * share + 1] === high) return true;
    const time = now();
    if (time < this.#lookAt) return false;
    this.#share = this.#sets.withShares(() => this.#claim(time));
    if (this.#share === NONE) this.#lookAt = time + RETRY_MS;
    else this.#locate();
    return this.#share !== NONE;
  }

  /** The share that another thread has claimed for the limit, else the first that is idle; NONE if all are in use. */
  #claim(now: number): number {
    const owned = this.#owned();
    if (owned !== NONE) return owned;
    const { owners, idleAt } = this.#sets;
    const { low, high } = this.#id;
    const idle = idleAt.findIndex((at) => at <= now);
    if (idle === NONE) return NONE;
    // Its old buckets stay: they are full, and their hashes differ from those of this limit's keys.
    owners[2 * idle] = low;
    owners[2 * idle + 1] = high;
    idleAt[idle] = now + RESERVED_MS;
    return idle;
  }

  /** The share of this limit; NONE if no thread has claimed one. */
  #owned(): number {
    const { owners, idleAt } = this.#sets;
    const { low, high } = this.#id;
    for (let share = 0; share < idleAt.length; share++)
      if (owners[2 * share] === low && owners[2 * share + 1] === high) return share;
    return NONE;
  }

  #locate(): void {
    const { common, sizes } = this.#sets.layout;
    const [large, small] = sizes;
    const beyond = this.#share - large.shares;
    this.#setCount = beyond < 0 ? large.sets : small.sets;
    this.#first =
      beyond < 0 ? common + this.#share * large.sets : common + large.shares * large.sets + beyond * small.sets;
  }
}

/** Memory for the buckets of a process; tests use smaller ones. */
export function createBuckets(layout: Layout = LAYOUT): SharedArrayBuffer {
  return bucketMemory(layout);
}
