import type { Count, Metrics } from "../../telemetry/metrics.ts";
import { keyed, LimitShare, overflow } from "../limit-memory/limit-share.ts";
import { NONE, type ShareLayout } from "../limit-memory/share-table.ts";
import type { Hash64 } from "../limit-memory/sip-hash.ts";
import { AT_LIMIT, CountSlots, countMemory, NO_ROOM, NOT_OWNED } from "./count-slots.ts";

/**
 * 16,384 counts that only the configuration defines: those of limits without a key, and the shared count of each limit. Then 32 shares of
 * 65,536 counts, and 1,024 of 1,024: 75 MiB of address space with 4 workers, which the system allocates as it is used.
 */
const LAYOUT: ShareLayout = {
  common: 256,
  sizes: [
    { shares: 32, sets: 1024 },
    { shares: 1024, sets: 16 },
  ],
};

type OverflowCounters = Pick<Metrics, "count">;

/**
 * How many requests are in progress, for limits of the process: all threads see the same counts, in memory of fixed size. Each limit whose
 * clients choose keys has its own share of it, so that a flood of keys affects no other limit. While the share is full, requests with
 * further keys are counted together, as if they had no key. A share belongs to a limit until another one claims it, which is possible
 * while it counts nothing.
 */
export class RequestCounts {
  readonly memory: SharedArrayBuffer;
  readonly #slots: CountSlots;
  readonly #counters: OverflowCounters | undefined;
  readonly #counting: boolean;

  /** `worker`: index of the thread. `counting` false: nothing is counted, as for rehearsals. */
  constructor(memory = createCounts(1), worker = 0, counters?: OverflowCounters, counting = true) {
    this.memory = memory;
    this.#slots = new CountSlots(memory, worker);
    this.#counters = counters;
    this.#counting = counting;
  }

  /** The counts of the limit `name`: the same ones in every thread, and after a reload. */
  of(name: string): LimitCounts {
    return new LimitCounts(this.#slots, name, this.#counters, this.#counting);
  }

  /** Ends the requests of a thread that has died, and releases its locks. Call only after the thread has ended. */
  endWorker(worker: number): void {
    this.#slots.endWorker(worker);
  }
}

/** A request that is counted, until the first call of `end`. */
export interface CountedRequest {
  end(): void;
}

/** The counts of one limit. */
export class LimitCounts {
  readonly #slots: CountSlots;
  readonly #name: string;
  readonly #counters: OverflowCounters | undefined;
  readonly #counting: boolean;
  readonly #share: LimitShare;
  readonly #hash: Hash64 = { low: 0, high: 0 };
  #overflows: Count | undefined;

  constructor(slots: CountSlots, name: string, counters: OverflowCounters | undefined, counting: boolean) {
    this.#slots = slots;
    this.#name = name;
    this.#counters = counters;
    this.#counting = counting;
    this.#share = new LimitShare(slots, name);
  }

  /** Requests with the key of the last `begin`, that one included if it is counted. */
  get count(): number {
    return this.#slots.count;
  }

  /** Counts a request with this key, or without one; undefined if `max` are in progress. */
  begin(max: number, key?: string): CountedRequest | undefined {
    const slot = this.#counting ? this.#acquire(max, key) : this.#peek(max, key);
    if (slot < 0) return undefined;
    return this.#counting ? new Counted(this.#slots, slot) : REHEARSED;
  }

  #acquire(max: number, key: string | undefined): number {
    const slots = this.#slots;
    if (key === undefined) return this.#acquireCommon(this.#name, max);
    slots.hash(keyed(this.#name, key), this.#hash);
    const share = this.#share;
    let slot = share.last === NONE ? NOT_OWNED : slots.acquireIn(share.last, share.owner, this.#hash, max);
    if (slot === NOT_OWNED && share.claim(performance.now()))
      slot = slots.acquireIn(share.last, share.owner, this.#hash, max);
    if (slot >= 0 || slot === AT_LIMIT) return slot;
    this.#overflows ??= this.#counters?.count("concurrency_limit_overflow_total", this.#name);
    if (this.#overflows !== undefined) this.#overflows.count++;
    return this.#acquireCommon(overflow(this.#name), max);
  }

  #acquireCommon(name: string, max: number): number {
    this.#slots.hash(name, this.#hash);
    return this.#slots.acquire(this.#hash, max);
  }

  #peek(max: number, key: string | undefined): number {
    const slots = this.#slots;
    const inCommon = (name: string): number => {
      slots.hash(name, this.#hash);
      return slots.peek(this.#hash, max);
    };
    if (key === undefined) return inCommon(this.#name);
    const share = slots.ownedBy(this.#share.owner);
    // A limit that would claim a share counts nothing there, as a new key of the common memory.
    if (share === NONE) return inCommon(slots.hasIdleShare ? keyed(this.#name, key) : overflow(this.#name));
    slots.hash(keyed(this.#name, key), this.#hash);
    const slot = slots.peekIn(share, this.#hash, max);
    return slot === NO_ROOM ? inCommon(overflow(this.#name)) : slot;
  }
}

/** A closure would be as large, and could not say whether it has run. */
class Counted implements CountedRequest {
  readonly #slots: CountSlots;
  #slot: number;

  constructor(slots: CountSlots, slot: number) {
    this.#slots = slots;
    this.#slot = slot;
  }

  end(): void {
    if (this.#slot === NONE) return;
    this.#slots.release(this.#slot);
    this.#slot = NONE;
  }
}

const REHEARSED: CountedRequest = { end() {} };

/** Memory for the counts of a process with so many workers; tests use smaller ones. */
export function createCounts(workers: number, layout: ShareLayout = LAYOUT): SharedArrayBuffer {
  return countMemory(workers, layout);
}
