/**
 * The deadlines of one exchange, both counted from the start of the request. `requestTimeout` ends where a response begins. The deadline
 * that a gRPC client has set by `grpc-timeout` covers the whole call, to the end of a stream: clients and backends enforce it too; the
 * gateway ends calls whose client is lost or whose backend ignores it.
 */
import type { Milliseconds } from "../../base/durations.ts";
import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import { getHeader, type HeaderList, setHeader } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";

const FIELD = "grpc-timeout";
/** Milliseconds of each unit. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ["H", 3_600_000],
  ["M", 60_000],
  ["S", 1000],
  ["m", 1],
  ["u", 1e-3],
  ["n", 1e-6],
]);
/** gRPC over HTTP/2, "Requests". */
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
/** Eight digits. */
const MAX_VALUE = 99_999_999;
/** Milliseconds, about 24.8 days: Node.js fires a timer with a longer delay after 1 ms. */
const MAX_DELAY = 2 ** 31 - 1;

/** What the deadlines need of their exchange. */
interface Owner {
  readonly request: { readonly headers: HeaderList };
  /** `performance.now()` ms. */
  readonly startedAt: number;
  readonly policyState: { readonly requestTimeout: number };
  readonly call: { readonly attemptTimeout: Milliseconds; expireAttempt(): void; expire(): void } | undefined;
  endPhase(error: GatewayError): void;
}

export class Deadlines {
  readonly #exchange: Owner;
  /** Runs while the exchange waits for a response. */
  #request: NodeJS.Timeout | undefined;
  /** Milliseconds that the client has set; undefined = none. */
  #grpcTimeout: number | undefined;
  #grpc: NodeJS.Timeout | undefined;
  /** Milliseconds that `skip` has skipped. */
  #skipped = 0;

  constructor(exchange: Owner) {
    this.#exchange = exchange;
  }

  /** Starts the timer of `requestTimeout`, if it is set and the timer does not run; when the exchange waits. */
  start(): void {
    const { requestTimeout } = this.#exchange.policyState;
    if (requestTimeout === 0 || this.#request !== undefined) return;
    this.#request = this.#after(requestTimeout, () => this.#requestPassed());
  }

  /** There is a response: its body may take as long as its sender and the client need. */
  stop(): void {
    if (this.#request === undefined) return;
    clearTimeout(this.#request);
    this.#request = undefined;
  }

  /**
   * Starts the timer of a gRPC call whose client has set a deadline, unless it runs. Throws TG_INVALID_REQUEST for a malformed field: a
   * call that its client believes to be limited must not run without limit.
   */
  startGrpc(): void {
    const { headers } = this.#exchange.request;
    const text = getHeader(headers, FIELD);
    if (text === undefined || this.#grpcTimeout !== undefined) return;
    const timeout = parseGrpcTimeout(text);
    if (timeout === undefined || headers.indexOf(FIELD) !== headers.lastIndexOf(FIELD))
      throw new GatewayError("TG_INVALID_REQUEST", "grpc-timeout is not one number of up to 8 digits and a unit");
    this.#grpcTimeout = timeout;
    if (timeout <= MAX_DELAY) this.#grpc = this.#after(timeout, () => this.#end("TG_DEADLINE_EXCEEDED"));
  }

  /** Reduces the client's deadline for the backend by the time used so far, if policies or failed attempts took a millisecond or more. */
  forwardGrpc(): void {
    if (this.#grpcTimeout === undefined) return;
    const { request, startedAt } = this.#exchange;
    const used = performance.now() - startedAt;
    if (used >= 1) setHeader(request.headers, FIELD, latin1(formatGrpcTimeout(this.#grpcTimeout - used)));
  }

  /**
   * Skips the time until the first deadline, which passes now: that of the attempt, of the request or of a gRPC client. For rehearsals, whose
   * backends may be silent. Returns false if there is no deadline.
   */
  skip(): boolean {
    const { call, policyState } = this.#exchange;
    const request = policyState.requestTimeout || Number.POSITIVE_INFINITY;
    const grpc = this.#grpcTimeout ?? Number.POSITIVE_INFINITY;
    const attempt = this.#skipped + (call?.attemptTimeout || Number.POSITIVE_INFINITY);
    const first = Math.min(request, grpc, attempt);
    if (first === Number.POSITIVE_INFINITY) return false;
    this.#skipped = first;
    if (first === attempt) call?.expireAttempt();
    else if (first === request) this.#requestPassed();
    else this.#end("TG_DEADLINE_EXCEEDED");
    return true;
  }

  #requestPassed(): void {
    this.#exchange.call?.expire();
    this.#end("TG_REQUEST_TIMEOUT");
  }

  /** The exchange is over. */
  close(): void {
    this.stop();
    clearTimeout(this.#grpc);
  }

  /** After so many milliseconds from the start of the request. */
  #after(timeout: number, passed: () => void): NodeJS.Timeout {
    // Node.js would write a warning about a negative delay.
    return setTimeout(passed, Math.max(0, this.#exchange.startedAt + timeout - performance.now()));
  }

  #end(code: ErrorCode): void {
    this.#exchange.endPhase(new GatewayError(code));
  }
}

/** Milliseconds, with fractions; undefined where the text is malformed. */
export function parseGrpcTimeout(text: string): number | undefined {
  const [, value, unit = ""] = TIMEOUT.exec(text) ?? [];
  return value === undefined ? undefined : Number(value) * (UNITS.get(unit) ?? 0);
}

/** The text for a number of milliseconds, in seconds if it has more than eight digits; at least 1 ms. */
export function formatGrpcTimeout(milliseconds: number): `${number}m` | `${number}S` {
  const whole = Math.max(1, Math.floor(milliseconds));
  return whole <= MAX_VALUE ? `${whole}m` : `${Math.min(MAX_VALUE, Math.floor(whole / 1000))}S`;
}
