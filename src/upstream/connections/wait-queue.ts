import type { ErrorCode } from "../../base/errors.ts";
import type { ConnectTimes } from "./connect-attempt.ts";

/** Waits for a connection. */
interface Waiting {
  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes): void;
}

interface Queued<Waiter> {
  readonly waiter: Waiter;
  readonly timer: NodeJS.Timeout;
}

/**
 * Requests that wait for room in a pool, first in first out. Their number is bounded, so that a hanging backend cannot fill the
 * memory, and so is the time, so that clients get an error while they are still there.
 */
export class WaitQueue<Waiter extends Waiting> {
  readonly #limit: number;
  readonly #timeout: number;
  readonly #entries: Queued<Waiter>[] = [];
  /** Requests rejected because the queue was full; for metrics. */
  overflows = 0;

  /** `timeout` in milliseconds. */
  constructor(limit: number, timeout: number) {
    this.#limit = limit;
    this.#timeout = timeout;
  }

  get size(): number {
    return this.#entries.length;
  }

  get first(): Waiter | undefined {
    return this.#entries[0]?.waiter;
  }

  /**
   * Adds a request. If the queue is full, the request fails with TG_POOL_FULL after this has returned, unless `roomComes`: a connection
   * is being closed for it. Returns a function that cancels the wait.
   */
  add(waiter: Waiter, roomComes = false): () => void {
    if (this.#entries.length >= this.#limit && !roomComes) {
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
      this.#remove(entry);
      waiter.onConnectFailure("TG_UPSTREAM_TIMEOUT", "no connection was free in time", {});
    }, this.#timeout);
    const entry = { waiter, timer };
    this.#entries.push(entry);
    return () => this.#remove(entry);
  }

  /** Removes and returns the first request, for the caller to serve. */
  shift(): Waiter | undefined {
    const entry = this.#entries.shift();
    clearTimeout(entry?.timer);
    return entry?.waiter;
  }

  /** Fails all that wait: the connection that they waited for could not be opened. */
  failAll(code: ErrorCode, message: string, times: ConnectTimes): void {
    for (const { waiter, timer } of this.#entries.splice(0)) {
      clearTimeout(timer);
      waiter.onConnectFailure(code, message, times);
    }
  }

  #remove(entry: Queued<Waiter>): void {
    clearTimeout(entry.timer);
    const index = this.#entries.indexOf(entry);
    if (index !== -1) this.#entries.splice(index, 1);
  }
}
