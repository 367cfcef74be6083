import type { ErrorCode } from "../base/errors.ts";
import { ConnectClock, type ConnectTimes } from "./connect-clock.ts";
import type { UpstreamConnection } from "./connection.ts";
import type { UpstreamSession } from "./h2/session.ts";

/** Gets the connection or the reason why there is none; exactly one call. */
export interface ConnectWaiter<Connected> {
  onConnection(connection: Connected): void;
  /** `times`: of the steps until then. */
  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes): void;
}

/** Waits for what can carry a request: exactly one call. With a session, the request has to be sent in that call. */
export interface UpstreamWaiter extends ConnectWaiter<UpstreamConnection> {
  onSession(session: UpstreamSession): void;
}

/** One wait for a connection: ends once, by success, failure, timeout or cancellation. */
export class ConnectAttempt<Connected> {
  closed = false;
  readonly clock = new ConnectClock();
  readonly #waiter: ConnectWaiter<Connected>;
  readonly #onEnd: () => void;
  readonly #deadline: number;
  #timer: NodeJS.Timeout;
  #giveUp: (() => void) | undefined;

  /** `onEnd` is called first, however the wait ends. */
  constructor(waiter: ConnectWaiter<Connected>, timeoutMs: number, onEnd: () => void) {
    this.#waiter = waiter;
    this.#onEnd = onEnd;
    this.#deadline = performance.now() + timeoutMs;
    this.#timer = setTimeout(() => this.#expire(), timeoutMs);
  }

  /** An address is being tried; of the time that is left it gets its share among the `candidates` not tried before. */
  trying(giveUp: () => void, candidates: number): void {
    this.#giveUp = giveUp;
    if (candidates === 1) return;
    clearTimeout(this.#timer);
    const share = (this.#deadline - performance.now()) / candidates;
    this.#timer = setTimeout(() => {
      this.#timer = setTimeout(() => this.#expire(), this.#deadline - performance.now());
      giveUp();
    }, share);
  }

  succeed(connection: Connected): boolean {
    if (this.closed) return false;
    this.#end();
    this.#waiter.onConnection(connection);
    return true;
  }

  fail(code: ErrorCode, message: string): void {
    if (this.closed) return;
    this.#end();
    this.#waiter.onConnectFailure(code, message, this.clock.times);
  }

  cancel(): void {
    if (this.closed) return;
    this.#end();
    this.#giveUp?.();
  }

  #expire(): void {
    this.fail("TG_UPSTREAM_TIMEOUT", "connect timeout");
    this.#giveUp?.();
  }

  #end(): void {
    this.closed = true;
    this.clock.ended();
    clearTimeout(this.#timer);
    this.#onEnd();
  }
}
