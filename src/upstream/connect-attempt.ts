import type { ErrorCode } from "../base/errors.ts";

/** Milliseconds that the steps of making a connection took; a step that was not needed or not reached is absent. */
export interface ConnectTimes {
  /** From the name to its addresses; about 0 when they were known. */
  readonly dns?: number;
  /** To the server, or to the proxy on the way; addresses that did not answer are part of it. */
  readonly connect?: number;
  /** The TLS handshake with the server. */
  readonly tls?: number;
}

/** Notes when each step of making one connection ends, so that a trace can say where the time went. */
export class ConnectClock {
  /** `performance.now()` ms; 0 = not yet. */
  readonly #startedAt = performance.now();
  #locatedAt = 0;
  #reachedAt = 0;
  #endedAt = 0;
  #named = false;

  /** The addresses are there. `named`: a name had to be looked up. */
  located(named: boolean): void {
    this.#locatedAt = performance.now();
    this.#named = named;
  }

  /** Bytes reach the server, and the handshake begins. */
  reached(): void {
    this.#reachedAt = performance.now();
  }

  /** The connection can be used, or the attempt has failed. */
  ended(): void {
    this.#endedAt = performance.now();
  }

  get times(): ConnectTimes {
    const [started, located, reached, end] = [this.#startedAt, this.#locatedAt, this.#reachedAt, this.#endedAt];
    return {
      ...((this.#named || located === 0) && { dns: (located || end) - started }),
      ...(located !== 0 && { connect: (reached || end) - located }),
      ...(reached !== 0 && { tls: end - reached }),
    };
  }
}

/** Gets the connection or the reason why there is none; exactly one call. */
export interface ConnectWaiter<Connected> {
  onConnection(connection: Connected): void;
  /** `times`: of the steps until then. */
  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes): void;
}

/**
 * One wait for a connection over all addresses of its target: ends once, by success, failure, timeout or cancellation. After
 * that the connection that may still come is closed by whoever opened it (`succeed` returns false).
 */
export class ConnectAttempt<Connected> {
  closed = false;
  /** Times of its steps, for traces. */
  readonly clock = new ConnectClock();
  readonly #waiter: ConnectWaiter<Connected>;
  readonly #onEnd: () => void;
  readonly #deadline: number;
  #timer: NodeJS.Timeout;
  #cancelDial: (() => void) | undefined;

  /** `onEnd` is called first, however the wait ends. */
  constructor(waiter: ConnectWaiter<Connected>, timeoutMs: number, onEnd: () => void) {
    this.#waiter = waiter;
    this.#onEnd = onEnd;
    this.#deadline = performance.now() + timeoutMs;
    this.#timer = setTimeout(() => this.#expire(), timeoutMs);
  }

  /** An address is being tried; of the time that is left it gets its share among the `candidates` not tried before. */
  trying(cancelDial: () => void, candidates: number): void {
    this.#cancelDial = cancelDial;
    if (candidates === 1) return;
    clearTimeout(this.#timer);
    const share = (this.#deadline - performance.now()) / candidates;
    this.#timer = setTimeout(() => {
      this.#timer = setTimeout(() => this.#expire(), this.#deadline - performance.now());
      cancelDial();
    }, share);
  }

  /** Hands the connection over. False: too late, the caller has to close it. */
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

  /** The request does not wait any more: nothing is called, and the connection that is being opened is dropped. */
  cancel(): void {
    if (this.closed) return;
    this.#end();
    this.#cancelDial?.();
  }

  #expire(): void {
    this.fail("TG_UPSTREAM_TIMEOUT", "connect timeout");
    this.#cancelDial?.();
  }

  #end(): void {
    this.closed = true;
    this.clock.ended();
    clearTimeout(this.#timer);
    this.#onEnd();
  }
}
