import { parseDuration } from "../../base/durations.ts";
import { getHeader, type HeaderList } from "../../http/message/message.ts";

/** Larger numbers in `x-ratelimit-reset` are seconds since 1970. */
const EPOCH = 1_000_000_000;
const RESETS = ["requests", "tokens", "requests-day", "tokens-minute"].map((each) => `x-ratelimit-reset-${each}`);

/**
 * Milliseconds after which a service that returned 429 accepts the next request (RFC 9110 10.2.3 and what services send in its
 * place, docs/configuration.md#healtheviction); undefined if no header says so. `now`: milliseconds since 1970.
 */
export function retryAfter(headers: HeaderList, now: number): number | undefined {
  const resets = RESETS.map((name) => positive(seconds(getHeader(headers, name)))).filter((each) => each !== undefined);
  return (
    positive(secondsOrDate(getHeader(headers, "retry-after"), now)) ??
    positive(numberOf(getHeader(headers, "retry-after-ms"))) ??
    positive(secondsOrEpoch(getHeader(headers, "x-ratelimit-reset"), now)) ??
    (resets.length > 0 ? Math.min(...resets) : undefined)
  );
}

function secondsOrDate(text: string | undefined, now: number): number | undefined {
  const plain = numberOf(text);
  if (plain !== undefined || text === undefined) return plain === undefined ? undefined : plain * 1000;
  return Date.parse(text) - now;
}

function secondsOrEpoch(text: string | undefined, now: number): number | undefined {
  const plain = numberOf(text);
  if (plain === undefined) return undefined;
  return plain > EPOCH ? plain * 1000 - now : plain * 1000;
}

/** `12`, `1.5` or a duration such as `6m0s`. */
function seconds(text: string | undefined): number | undefined {
  const plain = numberOf(text);
  if (plain !== undefined || text === undefined) return plain === undefined ? undefined : plain * 1000;
  return parseDuration(text);
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

function positive(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) && value > 0 ? value : undefined;
}
