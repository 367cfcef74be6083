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
