/**
 * Overload protection of one worker (`config.overload`): new work is turned away before its memory is exhausted or everything it does
 * is late. Work in progress continues.
 *
 * - Lag: the event loop is late, so every request waits for others. A share of the requests is turned away, more from sample to sample
 *   until the lag falls, then less.
 * - Heap: what is left after a collection is close to the limit of the worker's heap, where V8 ends the thread.
 * - Memory: the process is close to the limit of its container, where the system ends it (memory-pressure.ts).
 *
 * While heap or memory is short, requests and connections are turned away, and the thread is frugal, so that work in progress does not
 * use up the rest.
 */
import { GatewayError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { setMemoryShort } from "../../net/frugality.ts";
import type { Count, Metrics } from "../../telemetry/metrics.ts";
import type { MemoryPressure } from "./memory-pressure.ts";

/** Milliseconds between samples. */
export const SAMPLE_MS = 250;
/**
 * Requests after which the heap is measured without waiting for the next sample: a small heap fills faster. A measurement costs 4
 * µs. Requests may have heads of 60 KiB, so it is measured more often once the share FILLING of the limit is in use.
 */
const REQUESTS_PER_MEASUREMENT = 64;
const REQUESTS_WHEN_FILLING = 8;
const FILLING = 0.6;
/** One late sample may be one long task, such as a collection. */
const LATE_SAMPLES = 2;
/** How much the share of rejected requests grows with each late sample, and falls with each sample after that: 5 s from all to none. */
const TURN_AWAY_MORE = 0.2;
const TURN_AWAY_LESS = 0.05;
/** Heap and lag have to fall to these shares of their limits, so that the state does not flap. */
const RELIEVED = 0.9;
const LAG_RELIEVED = 0.5;
/** Limit of the time for garbage collections, as a share: they stop the thread. */
const COLLECTION_SHARE = 0.1;
/** Seconds until clients should try again. */
const RETRY_AFTER = ["retry-after", "2"];

/** Limits of one worker. */
export interface OverloadLimits {
  /** Milliseconds; 0 = off. */
  readonly maxLag: number;
  /** Share of the heap's limit; 0 = off. */
  readonly heapShare: number;
}

/** Bytes; `external`: of buffers, outside the heap. */
interface HeapUse {
  readonly used: number;
  readonly limit: number;
  readonly external: number;
}

/** The thread; replaced in tests. */
export interface OverloadSystem {
  /** Milliseconds. */
  now(): number;
  heap(): HeapUse;
  /** Collects all garbage, while the thread waits. */
  collect(): void;
  /** Uniform in [0, 1). */
  random(): number;
}

type OverloadReason = "lag" | "heap" | "memory";

/** For errors, after "the gateway is overloaded". */
const WHY: Readonly<Record<OverloadReason, string>> = {
  lag: "the event loop is late",
  heap: "the heap of the worker is almost full",
  memory: "the memory of the process is almost full",
};

interface State {
  readonly active: Count;
  /** What was turned away. */
  readonly requests: Count;
  readonly connections: Count | undefined;
  /** Milliseconds of `now`; undefined = not in this state. */
  since: number | undefined;
}

/** The state of one worker, which `sample` keeps up to date. */
export class Overload {
  readonly #limits: OverloadLimits;
  readonly #pressure: MemoryPressure;
  readonly #worker: number;
  readonly #system: OverloadSystem;
  readonly #log: Logger;
  readonly #lag: Count;
  readonly #states: Readonly<Record<OverloadReason, State>>;
  /** Share of requests to turn away because of the lag. */
  #turnedAway = 0;
  #lateSamples = 0;
  #heapFull = false;
  #sampledAt: number;
  /** Requests until the next measurement. */
  #requestsLeft = REQUESTS_PER_MEASUREMENT;
  /** Earliest `now` of the next collection. */
  #collectAt = 0;
  #collections: number;

  /** `worker`: its index. */
  constructor(
    limits: OverloadLimits,
    pressure: MemoryPressure,
    worker: number,
    metrics: Metrics,
    log: Logger,
    system: OverloadSystem,
  ) {
    this.#limits = limits;
    this.#pressure = pressure;
    this.#worker = worker;
    this.#system = system;
    this.#log = log;
    this.#lag = metrics.count("event_loop_lag_seconds", `worker-${worker}`);
    const stateOf = (reason: OverloadReason): State => ({
      active: metrics.count("overloaded_workers", reason),
      requests: metrics.count("overload_rejected_total", "request", reason),
      connections: reason === "lag" ? undefined : metrics.count("overload_rejected_total", "connection", reason),
      since: undefined,
    });
    this.#states = { lag: stateOf("lag"), heap: stateOf("heap"), memory: stateOf("memory") };
    this.#sampledAt = system.now();
    this.#collections = pressure.collections;
  }

  /** Throws TG_OVERLOADED for a request that is turned away. Called for each request. */
  admitRequest(): void {
    if (--this.#requestsLeft <= 0) this.#measureMemory();
    const full = this.#whatIsFull();
    if (full === undefined && this.#turnedAway === 0) return;
    const reason = full ?? "lag";
    if (reason === "lag" && this.#system.random() >= this.#turnedAway) return;
    this.#states[reason].requests.count++;
    throw new GatewayError("TG_OVERLOADED", WHY[reason], undefined, { headers: RETRY_AFTER });
  }

  /** False: the connection, or the session of UDP, has to be closed. Lag alone does not close any. */
  admitConnection(): boolean {
    const full = this.#whatIsFull();
    if (full === undefined) return true;
    const { connections } = this.#states[full];
    if (connections !== undefined) connections.count++;
    return false;
  }

  /** The memory of the process cannot wait for the next sample. */
  #whatIsFull(): "heap" | "memory" | undefined {
    if (this.#heapFull) return "heap";
    return this.#pressure.active ? "memory" : undefined;
  }

  /** Called every `SAMPLE_MS`, or later if the thread is busy. */
  sample(): void {
    const now = this.#system.now();
    const lag = Math.max(0, now - this.#sampledAt - SAMPLE_MS);
    this.#sampledAt = now;
    this.#lag.count = lag / 1000;
    this.#measureLag(lag);
    this.#measureMemory();
  }

  #measureLag(lag: number): void {
    const { maxLag } = this.#limits;
    if (maxLag === 0) return;
    if (lag >= maxLag) {
      if (++this.#lateSamples >= LATE_SAMPLES) this.#turnedAway = Math.min(1, this.#turnedAway + TURN_AWAY_MORE);
    } else {
      this.#lateSamples = 0;
      if (lag < maxLag * LAG_RELIEVED) this.#turnedAway = Math.max(0, this.#turnedAway - TURN_AWAY_LESS);
      // Differences of decimal fractions do not always come out as 0.
      if (this.#turnedAway < TURN_AWAY_LESS / 2) this.#turnedAway = 0;
    }
    this.#note("lag", this.#turnedAway > 0, () => ({ lag: `${Math.round(lag)}ms` }));
  }

  #measureMemory(): void {
    const { collections } = this.#pressure;
    if (collections !== this.#collections) {
      this.#collections = collections;
      this.#collect();
    }
    const { used, limit, external } = this.#measureHeap();
    this.#requestsLeft = used < limit * FILLING ? REQUESTS_PER_MEASUREMENT : REQUESTS_WHEN_FILLING;
    this.#pressure.hold(this.#worker, used + external);
    setMemoryShort(this.#heapFull || this.#pressure.near || this.#pressure.active);
    this.#note("heap", this.#heapFull, () => ({ used: mebibytes(used), limit: mebibytes(limit) }));
    this.#note("memory", this.#pressure.active);
  }

  /** Garbage must not count, but V8 collects late: so it is collected here before a state begins and while it lasts. */
  #measureHeap(): HeapUse {
    const { heapShare } = this.#limits;
    const heap = this.#system.heap();
    const lasts = this.#states.heap.since !== undefined;
    const share = heapShare === 0 ? Infinity : lasts ? heapShare * RELIEVED : heapShare;
    this.#heapFull = heap.used >= heap.limit * share;
    // A heap that is full again shortly after a collection fills too fast for another collection to help.
    if (!this.#heapFull || this.#system.now() < this.#collectAt) return heap;
    this.#collect();
    const left = this.#system.heap();
    this.#heapFull = left.used >= left.limit * share;
    return left;
  }

  #collect(): void {
    const startedAt = this.#system.now();
    this.#system.collect();
    const now = this.#system.now();
    this.#collectAt = now + (now - startedAt) / COLLECTION_SHARE;
    // The time is the collection's, not that of work that piles up.
    this.#sampledAt += now - startedAt;
  }

  #note(reason: OverloadReason, active: boolean, describe: () => Readonly<Record<string, string>> = () => ({})): void {
    const state = this.#states[reason];
    if (active === (state.since !== undefined)) return;
    const now = this.#system.now();
    const fields = describe();
    state.active.count = active ? 1 : 0;
    if (active) {
      state.since = now;
      this.#log.warn(`overloaded: ${WHY[reason]}, new work is turned away`, { worker: this.#worker, ...fields });
    } else {
      const lasted = `${Math.round(now - (state.since ?? now))}ms`;
      state.since = undefined;
      this.#log.info("no longer overloaded", { worker: this.#worker, reason, lasted, ...fields });
    }
  }
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)}MiB`;
}
