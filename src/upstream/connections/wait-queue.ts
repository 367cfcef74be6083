import type { ErrorCode } from "../../base/errors.ts";
import { ProcessCount } from "../loads/process-count.ts";
import type { ConnectTimes } from "./connect-attempt.ts";

/** A request that may have to wait for a connection. */
interface Waiting {
  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes | undefined): void;
}

/** One wait for a connection. */
export interface Wait {
  /** The connections of the pool are all in use. False: one is being opened, and the server may be slow to accept it. */
  readonly forRoom: boolean;
  /** The waiter is not called. */
  cancel(): void;
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
  readonly #full: () => boolean;
  readonly #count: ProcessCount;
  readonly #entries: Queued<Waiter>[] = [];
  /** Requests rejected because the queue was full; for metrics. */
  overflows = 0;

  /**
   * `timeout` in milliseconds. `full`: requests wait for connections that are in use, not for one that is being opened. `count`: of all
   * queues that the limit is for; by default, of this one.
   */
  constructor(limit: number, timeout: number, full: () => boolean, count = new ProcessCount()) {
    this.#limit = limit;
    this.#count = count;
    this.#timeout = timeout;
    this.#full = full;
  }

  get size(): number {
    return this.#entries.length;
  }

  get first(): Waiter | undefined {
    return this.#entries[0]?.waiter;
  }

  /**
   * Adds a request. If the queue is full, the request fails with TG_POOL_FULL after this has returned, unless `roomComes`: a connection
   * is being closed for it.
   */
  add(waiter: Waiter, roomComes = false): Wait {
    if (!this.#count.begin(roomComes ? Number.POSITIVE_INFINITY : this.#limit)) {
      this.overflows++;
      return rejectLater(waiter, `no connection is free and ${this.#limit} requests wait`);
    }
    const full = this.#full;
    const timer = setTimeout(() => {
      this.#remove(entry);
      waiter.onConnectFailure("TG_UPSTREAM_TIMEOUT", "no connection was free in time", full() ? undefined : {});
    }, this.#timeout);
    const entry = { waiter, timer };
    this.#entries.push(entry);
    return {
      get forRoom() {
        return full();
      },
      cancel: () => this.#remove(entry),
    };
  }

  /** Removes and returns the first request, for the caller to serve. */
  shift(): Waiter | undefined {
    const entry = this.#entries.shift();
    if (entry === undefined) return undefined;
    this.#count.end();
    clearTimeout(entry.timer);
    return entry.waiter;
  }

  /** Fails all that wait: the connection that they waited for could not be opened. */
  failAll(code: ErrorCode, message: string, times: ConnectTimes | undefined): void {
    for (const { waiter, timer } of this.#entries.splice(0)) {
      this.#count.end();
      clearTimeout(timer);
      waiter.onConnectFailure(code, message, times);
    }
  }

  #remove(entry: Queued<Waiter>): void {
    clearTimeout(entry.timer);
    const index = this.#entries.indexOf(entry);
    if (index === -1) return;
    this.#entries.splice(index, 1);
    this.#count.end();
  }
}

/** Fails a request for lack of room, with TG_POOL_FULL and once this has returned. */
export function rejectLater(waiter: Waiting, message: string): Wait {
  let cancelled = false;
  queueMicrotask(() => {
    if (!cancelled) waiter.onConnectFailure("TG_POOL_FULL", message, undefined);
  });
  return {
    forRoom: true,
    cancel() {
      cancelled = true;
    },
  };
}
