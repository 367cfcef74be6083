import type { ErrorCode } from "../../base/errors.ts";
import type { Latin1 } from "../../http/message/message.ts";

/** Milliseconds that each step of opening a connection took; a step that was not needed or not reached is absent. */
export interface ConnectTimes {
  /** Looking up the name; about 0 if its addresses were known. */
  readonly dns?: number;
  /** Connecting to the server, or to the proxy on the way, including addresses that did not respond. */
  readonly connect?: number;
  /** The TLS handshake with the server. */
  readonly tls?: number;
}

/** Records when each step of opening one connection ends, so that a trace can show where the time went. */
export class ConnectClock {
  /** `performance.now()` ms; 0 = not yet. */
  readonly #startedAt = performance.now();
  #locatedAt = 0;
  #reachedAt = 0;
  #endedAt = 0;
  #named = false;

  /** The addresses are known. `named`: a name had to be looked up. */
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

/** Receives the connection or the reason for a failure, in exactly one call. */
export interface ConnectWaiter<Connected> {
  /** CDN-Loop of a CONNECT that is sent for this waiter alone (http/loop.ts). Default: that of a call that belongs to no request. */
  readonly loop?: Latin1 | undefined;
  onConnection(connection: Connected): void;
  /** `times`: of the steps that were reached; undefined: there was no room to open a connection, which says nothing about the server. */
  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes | undefined): void;
}

/**
 * One wait for a connection, over all addresses of its target. It ends once: by success, failure, timeout or cancellation. A
 * connection that opens after that is closed by the code that opened it (`succeed` returns false).
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

  /** An address is being tried: it gets an equal share of the remaining time among the `candidates` that are left, including itself. */
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

  /** Passes the connection to the waiter. False: too late, the caller has to close it. */
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

  /** There is no room for another connection: none was tried. */
  reject(message: string): void {
    if (this.closed) return;
    this.#end();
    this.#waiter.onConnectFailure("TG_POOL_FULL", message, undefined);
  }

  /** The request no longer waits: the waiter is not called, and the connection that is being opened is dropped. */
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
