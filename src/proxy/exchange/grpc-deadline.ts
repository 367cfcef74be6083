/**
 * The deadline that a gRPC client has set by `grpc-timeout`. Unlike `requestTimeout` it covers the whole call, to the end of a
 * stream. Clients and backends enforce it too; the gateway ends calls whose client is lost or whose backend ignores it.
 */
import { GatewayError } from "../../base/errors.ts";
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

export class GrpcDeadline {
  readonly #startedAt: number;
  readonly #timeout: number;
  readonly #timer: NodeJS.Timeout | undefined;

  /**
   * Starts the deadline of a request that came at `startedAt` (`performance.now()` ms); undefined if it has none. Throws
   * TG_INVALID_REQUEST for a malformed field: a call that its client believes to be limited must not run without limit.
   */
  static of(headers: HeaderList, startedAt: number, passed: () => void): GrpcDeadline | undefined {
    const text = getHeader(headers, FIELD);
    if (text === undefined) return undefined;
    const timeout = parseGrpcTimeout(text);
    if (timeout === undefined || headers.indexOf(FIELD) !== headers.lastIndexOf(FIELD))
      throw new GatewayError("TG_INVALID_REQUEST", "grpc-timeout is not one number of up to 8 digits and a unit");
    return new GrpcDeadline(timeout, startedAt, passed);
  }

  private constructor(timeout: number, startedAt: number, passed: () => void) {
    this.#timeout = timeout;
    this.#startedAt = startedAt;
    // Node.js would write a warning about a negative delay.
    if (timeout <= MAX_DELAY) this.#timer = setTimeout(passed, Math.max(0, this.#left));
  }

  get #left(): number {
    return this.#startedAt + this.#timeout - performance.now();
  }

  /** Reduces the field for the backend by the time used so far, if policies or failed attempts took a millisecond or more. */
  forward(headers: HeaderList): void {
    const left = this.#left;
    if (this.#timeout - left >= 1) setHeader(headers, FIELD, latin1(formatGrpcTimeout(left)));
  }

  stop(): void {
    clearTimeout(this.#timer);
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
