/** Numbers of values that records hold. They are of one process, so they may change with any version. */
import { ERRORS, type ErrorCode, type Reason } from "../base/errors.ts";

/** Below 32, because `KeptClass` is found by it. */
const REASONS = {
  Upstream: 0,
  DirectResponse: 1,
  NotFound: 2,
  NoHealthyBackend: 3,
  Internal: 4,
  InvalidRequest: 5,
  ClientGone: 6,
  Timeout: 7,
  JwtAuth: 8,
  Oidc: 9,
  BasicAuth: 10,
  APIKeyAuth: 11,
  ExtAuth: 12,
  Authorization: 13,
  ExtProc: 14,
  RateLimit: 15,
  UpstreamFailure: 16,
  Overload: 17,
  ConcurrencyLimit: 18,
  Satisfy: 19,
} as const satisfies Readonly<Record<Reason, number>>;

export function reasonNumber(reason: Reason): number {
  return REASONS[reason];
}

const REASON_NAMES = Object.keys(REASONS) as readonly Reason[];

export function reasonOf(number: number): Reason {
  return REASON_NAMES[number] ?? "Internal";
}

const CODES = Object.keys(ERRORS) as readonly ErrorCode[];
const CODE_NUMBERS: ReadonlyMap<ErrorCode, number> = new Map(CODES.map((code, index) => [code, index + 1]));

/** From 1 on. */
export function errorNumber(code: ErrorCode): number {
  return CODE_NUMBERS.get(code) ?? 0;
}

/** Undefined for 0. */
export function errorOf(number: number): ErrorCode | undefined {
  return CODES[number - 1];
}
