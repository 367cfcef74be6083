/** Timestamps and durations: texts, parts of dates, time zones. */
import { BoundedCache } from "../../base/bounded-cache.ts";
import { detached } from "../../base/detached.ts";
import { fn, method, type Overload } from "../environment/overload.ts";
import { DURATION, INT, STRING, TIMESTAMP } from "../environment/types.ts";
import { BudgetExceeded, charge } from "../values/budget.ts";
import { type Failure, fail } from "../values/failure.ts";
import { CelDuration, CelTimestamp } from "../values/types.ts";

const NANOS = 1_000_000_000n;
/** 0001-01-01T00:00:00Z and the last nanosecond of the year 9999. */
const FIRST = -62_135_596_800n * NANOS;
const LAST = 253_402_300_800n * NANOS - 1n;
/** The range of 64 bits of nanoseconds, about 292 years. */
const LONGEST = 2n ** 63n - 1n;
const UNITS: Readonly<Record<string, number>> = { h: 3600e9, m: 60e9, s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, ns: 1 };

export function timestamp(nanos: bigint): CelTimestamp | Failure {
  return nanos < FIRST || nanos > LAST
    ? fail("the timestamp is not between the years 1 and 9999")
    : new CelTimestamp(nanos);
}

export function duration(nanos: bigint): CelDuration | Failure {
  return nanos < -LONGEST || nanos > LONGEST ? fail("the duration is longer than 292 years") : new CelDuration(nanos);
}

/** RFC 3339, with up to nine digits of a fraction. */
export function parseTimestamp(text: string): CelTimestamp | Failure {
  charge(PER_PARSING);
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/i.exec(text);
  const milliseconds = match === null ? Number.NaN : Date.parse(`${match[1]}${match[3]}`);
  if (match === null || Number.isNaN(milliseconds))
    return fail(`${JSON.stringify(text.slice(0, 60))} is not a timestamp such as 2024-01-31T12:00:00Z`);
  return timestamp(BigInt(milliseconds) * 1_000_000n + BigInt((match[2] ?? "").padEnd(9, "0")));
}

/** Maximum characters of a duration: longer ones are slow to read. */
const MAX_DURATION = 256;

/** As in `1h30m`, `1.5s` or `-200ms`. */
export function parseDuration(text: string): CelDuration | Failure {
  charge(PER_PARSING);
  const match =
    text.length > MAX_DURATION ? null : /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|s|us|µs|ns))+|0)$/.exec(text);
  if (match === null) return fail(`${JSON.stringify(text.slice(0, 60))} is not a duration such as 1h30m or 1.5s`);
  let nanos = 0n;
  for (const [, whole, fraction, unit] of (match[2] ?? "").matchAll(/(\d*)(?:\.(\d*))?(h|ms|m|s|us|µs|ns)/g)) {
    const scale = BigInt(UNITS[unit ?? ""] ?? 0);
    const digits = (fraction ?? "").slice(0, 18);
    nanos += BigInt(whole ?? "") * scale + (BigInt(digits) * scale) / 10n ** BigInt(digits.length);
  }
  return duration(match[1] === "-" ? -nanos : nanos);
}

type DatePart = (date: Date, nanos: bigint) => number;

const DATE_PARTS: Readonly<Record<string, DatePart>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: (date) => Math.floor((date.getTime() - startOfYear(date.getUTCFullYear())) / 86_400_000),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
};
const DURATION_PARTS: Readonly<Record<string, (nanos: bigint) => bigint>> = {
  getHours: (nanos) => nanos / (3600n * NANOS),
  getMinutes: (nanos) => nanos / (60n * NANOS),
  getSeconds: (nanos) => nanos / NANOS,
  getMilliseconds: (nanos) => (nanos / 1_000_000n) % 1000n,
};

/** Without Date.UTC, which takes years below 100 for those of the 20th century. */
function startOfYear(year: number): number {
  const date = new Date(0);
  date.setUTCFullYear(year, 0, 1);
  return date.getTime();
}

function datePart({ nanos }: CelTimestamp, part: DatePart, shift: number): bigint {
  const milliseconds = nanos >= 0n ? nanos / 1_000_000n : (nanos - 999_999n) / 1_000_000n;
  return BigInt(part(new Date(Number(milliseconds) + shift), nanos));
}

/** Steps of reading a timestamp or a duration, of the time in a zone, and of finding a zone. */
const PER_PARSING = 1024;
const PER_TIME = 2048;
const PER_ZONE = 65_536;
/** Maximum characters of a zone's name. */
const MAX_ZONE = 64;

const formats = new BoundedCache<Intl.DateTimeFormat>(64);

/** How far `zone` is from UTC at `time`, in milliseconds. Zones are IANA names or `[+-]hh:mm`. */
function offset(zone: string, time: CelTimestamp): number | Failure {
  const fixed = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (fixed !== null) return (Number(fixed[2]) * 60 + Number(fixed[3])) * 60_000 * (fixed[1] === "-" ? -1 : 1);
  charge(PER_TIME);
  try {
    const format = formats.get(zone) ?? formatOf(zone);
    const parts = format.formatToParts(new Date(Number(time.nanos / 1_000_000n)));
    const name = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
    const match = /([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(name);
    if (match === null) return 0;
    const seconds = Number(match[2]) * 3600 + Number(match[3]) * 60 + Number(match[4] ?? 0);
    return seconds * (match[1] === "-" ? -1000 : 1000);
  } catch (error) {
    if (error instanceof BudgetExceeded) throw error;
    return fail(
      `unknown time zone ${JSON.stringify(zone.slice(0, 60))}; names are as in Europe/Zurich, offsets as in +02:00`,
    );
  }
}

/** Throws for a zone that does not exist. */
function formatOf(zone: string): Intl.DateTimeFormat {
  if (zone.length > MAX_ZONE) throw new Error("the name is too long");
  charge(PER_ZONE);
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  formats.set(detached(zone), format);
  return format;
}

function inZone(time: CelTimestamp, zone: string, part: DatePart): bigint | Failure {
  const shift = offset(zone, time);
  return typeof shift === "number" ? datePart(time, part, shift) : shift;
}

export const TIMES: readonly Overload[] = [
  ...Object.entries(DATE_PARTS).flatMap(([name, part]) => [
    method(name, [TIMESTAMP], INT, (time: CelTimestamp) => datePart(time, part, 0)),
    method(name, [TIMESTAMP, STRING], INT, (time: CelTimestamp, zone: string) => inZone(time, zone, part)),
  ]),
  ...Object.entries(DURATION_PARTS).map(([name, part]) =>
    method(name, [DURATION], INT, ({ nanos }: CelDuration) => part(nanos)),
  ),
  fn("timestamp", [TIMESTAMP], TIMESTAMP, (value: CelTimestamp) => value),
  fn("timestamp", [STRING], TIMESTAMP, parseTimestamp),
  fn("timestamp", [INT], TIMESTAMP, (seconds: bigint) => timestamp(seconds * NANOS)),
  fn("duration", [DURATION], DURATION, (value: CelDuration) => value),
  fn("duration", [STRING], DURATION, parseDuration),
];
