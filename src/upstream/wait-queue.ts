import type { ErrorCode } from "../base/errors.ts";
import type { ConnectTimes } from "./connect-attempt.ts";

/** What waits for a connection. */
interface Waiting {
  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes): void;
}

interface Entry<Waiter> {
  readonly waiter: Waiter;
  readonly timer: NodeJS.Timeout;
}

/**
 * Requests that wait for room in a pool, first in first out. Bounded in number, so that a backend that hangs cannot fill the
 * memory, and in time, so that clients get an error while they still wait for one.
 */
export class WaitQueue<Waiter extends Waiting> {
  readonly #limit: number;
  readonly #timeout: number;
  readonly #entries = new Set<Entry<Waiter>>();
  /** Requests that were turned away because the queue was full; for metrics. */
  overflows = 0;

  /** `timeout` in milliseconds. */
  constructor(limit: number, timeout: number) {
    this.#limit = limit;
    this.#timeout = timeout;
  }

  get size(): number {
    return this.#entries.size;
  }

  get first(): Waiter | undefined {
    // Read whenever a connection becomes free, and the queue is usually empty: do not allocate an iterator.
    if (this.#entries.size === 0) return undefined;
    const [entry] = this.#entries;
    return entry?.waiter;
  }

  /**
   * Adds a request; when the queue is full it fails with TG_POOL_FULL, after this has returned. `roomComes`: a connection is
   * being closed for it, so it is not turned away. Returns a function that cancels the wait.
   */
  add(waiter: Waiter, roomComes = false): () => void {
    if (this.#entries.size >= this.#limit && !roomComes) {
      this.overflows++;
      let cancelled = false;
      queueMicrotask(() => {
        if (!cancelled)
          waiter.onConnectFailure("TG_POOL_FULL", `no connection is free and ${this.#limit} requests wait`, {});
      });
      return () => {
        cancelled = true;
      };
    }
    const timer = setTimeout(() => {
      this.#entries.delete(entry);
      waiter.onConnectFailure("TG_UPSTREAM_TIMEOUT", "no connection was free in time", {});
    }, this.#timeout);
    const entry = { waiter, timer };
    this.#entries.add(entry);
    return () => this.#remove(entry);
  }

  /** Takes the first request out; the caller serves it. */
  shift(): Waiter | undefined {
    const [entry] = this.#entries;
    if (entry === undefined) return undefined;
    this.#remove(entry);
    return entry.waiter;
  }

  /** Fails all that wait: the connection that they waited for could not be opened. */
  failAll(code: ErrorCode, message: string, times: ConnectTimes): void {
    for (const entry of [...this.#entries]) {
      this.#remove(entry);
      entry.waiter.onConnectFailure(code, message, times);
    }
  }

  #remove(entry: Entry<Waiter>): void {
    clearTimeout(entry.timer);
    this.#entries.delete(entry);
  }
}
