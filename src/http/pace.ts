/** How much a connection may hold, how long it may wait, and how much of a turn of the event loop it may use. */
import { FRUGAL_BYTES, frugal } from "../net/frugality.ts";

const QUEUE_BYTES = 64 * 1024;

/**
 * Bytes that a connection or a stream may buffer for a peer. The limit applies to three buffers: responses that a client does not
 * read (beyond it, its further requests are not read either); received bytes that cannot be used yet; and data of an HTTP/2 stream
 * that cannot be sent yet (beyond it, the sender has to wait).
 */
export function queueLimit(): number {
  return frugal ? FRUGAL_BYTES : QUEUE_BYTES;
}

/** After the last response, what the client still sends is discarded for this many milliseconds and bytes; then the connection closes. */
export const LINGER_MS = 2000;
export const LINGER_BYTES = 1024 * 1024;

/** Milliseconds that a client which is asked to reconnect may stay idle: without a request, no response can ask it. */
export const LEAVE_IDLE_MS = 5000;

/**
 * Requests of one connection that are begun in one turn of the event loop. A read can bring thousands, and every other connection
 * of the worker waits while they are processed.
 */
const REQUESTS_PER_TURN = 16;

/**
 * Milliseconds after which a connection has used up its turn, and the number of requests between two looks at the clock. A request
 * that opens a connection to the backend takes ten times as long as one that reuses a connection.
 */
const TURN_MS = 1;
const REQUESTS_PER_LOOK = 8;

/** Something that begins requests in turns. */
export interface TurnTaker {
  /** The turn after one that was used up: requests may begin again. */
  onTurn(): void;
  /** `onTurn` has thrown. */
  onFault(error: unknown): void;
}

/**
 * Shares the turns of the event loop between one connection that pipelines (RFC 9112 9.3.2) and all others. Without it, a client
 * that pipelines 2,000 requests keeps the worker busy until the last one is done.
 */
export class Turns {
  readonly #taker: TurnTaker;
  readonly #perTurn: number;
  #begun = 0;
  /** `performance.now()` ms when the clock was first read in this turn. */
  #since = 0;
  /** Further requests have to wait for the next turn. */
  waiting = false;

  /** `perTurn`: requests, default 16. */
  constructor(taker: TurnTaker, perTurn = REQUESTS_PER_TURN) {
    this.#taker = taker;
    this.#perTurn = perTurn;
  }

  /** Whether a request may begin now; otherwise `onTurn` follows. */
  begin(): boolean {
    if (this.waiting) return false;
    if (this.#begun < this.#perTurn && !this.#timeIsUp()) {
      this.#begun++;
      return true;
    }
    this.waiting = true;
    setImmediate(() => {
      this.waiting = false;
      this.#begun = 0;
      try {
        this.#taker.onTurn();
      } catch (error) {
        this.#taker.onFault(error);
      }
    });
    return false;
  }

  #timeIsUp(): boolean {
    if (this.#begun === 0 || this.#begun % REQUESTS_PER_LOOK !== 0) return false;
    const now = performance.now();
    if (this.#begun === REQUESTS_PER_LOOK) this.#since = now;
    return now - this.#since > TURN_MS;
  }

  /** Nothing is left to read: the next read begins a new count. */
  reset(): void {
    this.#begun = 0;
  }
}

/**
 * When a connection gives up a wait. The clock is read at once only for rare waits. Between requests the next sweep sets the
 * deadline: being up to a second late matters less than reading the clock for every request.
 */
export class Deadline {
  readonly #created = performance.now();
  /** `performance.now()` ms, 0 = never, or not set yet. */
  #at = 0;
  /** Bytes have moved since the last sweep, or a response has ended. */
  #progressed = false;

  get ageMs(): number {
    return performance.now() - this.#created;
  }

  /** Gives up after `ms` from now. */
  after(ms: number): void {
    this.#at = performance.now() + ms;
  }

  /** Another timeout covers the wait, such as those of an upstream call. */
  suspend(): void {
    this.#at = 0;
    this.#progressed = false;
  }

  /** The next sweep sets it. */
  restart(): void {
    this.#at = 0;
    this.#progressed = true;
  }

  /** Bytes have moved: the next sweep restarts the wait. */
  progress(): void {
    this.#progressed = true;
  }

  /** For a sweep: after progress, moves the deadline to `ms` after `now`. `keep`: a deadline that is already set stays. */
  renew(now: number, ms: number, keep: boolean): void {
    if (!this.#progressed) return;
    this.#progressed = false;
    if (!keep || this.#at === 0) this.#at = now + ms;
  }

  /** Whether the deadline has passed. */
  passed(now: number): boolean {
    return this.#at !== 0 && now >= this.#at;
  }

  /** Whether the connection is older than `ms`; 0 = any age is allowed. */
  olderThan(now: number, ms: number): boolean {
    return ms > 0 && now - this.#created > ms;
  }
}

/** Milliseconds before `minBodyRate` applies: TCP slow start or a busy client may delay a legitimate body. */
const RATE_GRACE_MS = 10_000;
/** Milliseconds over which the rate is measured: bytes sent earlier make up for at most this much silence. */
const RATE_WINDOW_MS = 30_000;

/**
 * Measures the rate of a request body: one that trickles in ("R-U-Dead-Yet"), or stops before its end, would occupy the request and its
 * upstream indefinitely. Every byte pays for some time at the minimum rate. Time in which the gateway did not read does not count.
 */
export class BodyRate {
  /** The stream reads the body. */
  open = false;
  /** Bytes so far, without framing. */
  received = 0;
  /** Bytes that have been counted. */
  #counted = 0;
  /** Milliseconds that are paid for. */
  #paid = 0;
  /** `performance.now()` ms of the last count, moved by the time that the body was paused. */
  #since = 0;
  #pausedAt = 0;

  /** Prepares for the next body. */
  reset(): void {
    this.open = false;
    this.received = 0;
    this.#counted = 0;
    this.#pausedAt = 0;
  }

  get paused(): boolean {
    return this.#pausedAt !== 0;
  }

  start(): void {
    this.open = true;
    this.#since = performance.now();
    this.#paid = RATE_GRACE_MS;
  }

  pause(): void {
    if (this.#pausedAt === 0) this.#pausedAt = performance.now();
  }

  resume(): void {
    this.#since += performance.now() - this.#pausedAt;
    this.#pausedAt = 0;
  }

  /** For a sweep: whether the client has sent less than `minRate` bytes per second, though it could send more. */
  tooSlow(now: number, minRate: number): boolean {
    if (!this.open || this.#pausedAt !== 0 || minRate === 0) return false;
    const earned = ((this.received - this.#counted) * 1000) / minRate;
    this.#paid = Math.min(this.#paid - (now - this.#since) + earned, RATE_WINDOW_MS);
    this.#counted = this.received;
    this.#since = now;
    return this.#paid < 0;
  }
}
