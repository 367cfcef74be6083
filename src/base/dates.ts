/** Times as text, each cached for a second: there are many log lines and responses per second. */

let lastSecond = Number.NaN;
let lastPrefix = "";

/**
 * RFC 3339 in UTC with milliseconds, such as `2026-02-03T04:05:06.789Z`, from milliseconds since the epoch. The part up to the
 * second is cached.
 */
export function formatTimestamp(epochMs: number): string {
  const whole = Math.floor(epochMs);
  const second = Math.floor(whole / 1000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastPrefix = new Date(second * 1000).toISOString().slice(0, 20);
  }
  const ms = whole - second * 1000;
  return `${lastPrefix}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
}

let cachedSecond = 0;
let cachedText = "";

/** The current time as an HTTP date (RFC 9110 5.6.7); built once a second. */
export function httpDate(now = Date.now()): string {
  const second = Math.floor(now / 1000);
  if (second !== cachedSecond) {
    cachedSecond = second;
    cachedText = new Date(second * 1000).toUTCString();
  }
  return cachedText;
}

/** Now, in Unix seconds. */
export function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
