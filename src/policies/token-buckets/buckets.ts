import type { Count, Metrics } from "../../telemetry/metrics.ts";
import { keyed, LimitShare, overflow } from "../limit-memory/limit-share.ts";
import { NONE, type ShareLayout } from "../limit-memory/share-table.ts";
import type { Hash64 } from "../limit-memory/sip-hash.ts";
import { type BucketRule, BucketSets, bucketMemory } from "./bucket-sets.ts";

export type { BucketRule } from "./bucket-sets.ts";

/**
 * 65,536 buckets that only the configuration defines: those of limits without a key, and the shared bucket of each limit. Then 64 shares of
 * 32,768 buckets, and 2,048 of 256: 84 MiB of address space, which the system allocates as it is used.
 */
const LAYOUT: ShareLayout = {
  common: 1024,
  sizes: [
    { shares: 64, sets: 512 },
    { shares: 2048, sets: 4 },
  ],
};

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
  readonly #share: LimitShare;
  readonly #hash: Hash64 = { low: 0, high: 0 };
  #overflows: Count | undefined;

  constructor(sets: BucketSets, name: string, counters: BucketCounters | undefined, taking: boolean) {
    this.#sets = sets;
    this.#name = name;
    this.#counters = counters;
    this.#taking = taking;
    this.#share = new LimitShare(sets, name);
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
      sets.hash(keyed(this.#name, key), this.#hash);
      const admitted = sets.takeIn(this.#share.last, this.#hash, rule);
      if (admitted !== undefined) return admitted;
    }
    this.#overflows ??= this.#counters?.count("local_rate_limit_overflow_total", this.#name);
    if (this.#overflows !== undefined) this.#overflows.count++;
    return this.#takeCommon(overflow(this.#name), rule);
  }

  #takeCommon(name: string, rule: BucketRule): boolean {
    const sets = this.#sets;
    sets.hash(name, this.#hash);
    if (!this.#taking) return sets.peek(this.#hash, rule);
    const admitted = sets.take(this.#hash, rule);
    if (sets.evicted && this.#counters !== undefined) this.#counters.count("local_rate_limit_evictions_total").count++;
    return admitted;
  }

  /** A limit that would claim an idle share has a full bucket there, as a new one in the memory for all. */
  #peek(rule: BucketRule, key: string): boolean {
    const sets = this.#sets;
    const share = sets.ownedBy(this.#share.owner);
    if (share === NONE)
      return this.#takeCommon(sets.hasIdleShare ? keyed(this.#name, key) : overflow(this.#name), rule);
    sets.hash(keyed(this.#name, key), this.#hash);
    return sets.peekIn(share, this.#hash, rule) ?? this.#takeCommon(overflow(this.#name), rule);
  }

  /** Another limit may have claimed the share since it became idle. */
  #hasShare(): boolean {
    const { last, owner } = this.#share;
    return (last !== NONE && this.#sets.isOwned(last, owner)) || this.#share.claim(this.#sets.now());
  }
}

/** Memory for the buckets of a process; tests use smaller ones. */
export function createBuckets(layout: ShareLayout = LAYOUT): SharedArrayBuffer {
  return bucketMemory(layout);
}
