/** The field `grpc-timeout`: the time that is left for a call when its request is sent (gRPC over HTTP/2, "Requests"). */

/** Milliseconds of each unit. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ["H", 3_600_000],
  ["M", 60_000],
  ["S", 1000],
  ["m", 1],
  ["u", 1e-3],
  ["n", 1e-6],
]);
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
/** Eight digits. */
const MAX_VALUE = 99_999_999;

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
