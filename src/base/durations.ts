const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const PART = /(\d+(?:\.\d+)?|\.\d+)(ns|us|µs|ms|s|m|h)/y;

declare const unit: unique symbol;

/** A time in milliseconds. Branded, so that seconds, bytes or counts do not compile in its place. */
export type Milliseconds = number & { readonly [unit]: "ms" };

/** A number that is known to be milliseconds, such as a default. */
export function ms(value: number): Milliseconds {
  // The brand exists for the compiler alone.
  return value as Milliseconds;
}

/** Parses a Go-style duration (`1s`, `500ms`, `1h30m`, `0`) to milliseconds; `undefined` if the text is anything else. */
export function parseDuration(text: string): Milliseconds | undefined {
  if (text === "0") return ms(0);
  let total = 0;
  PART.lastIndex = 0;
  while (PART.lastIndex < text.length) {
    const match = PART.exec(text);
    if (match === null) return undefined;
    total += Number(match[1]) * (UNITS[match[2] ?? ""] ?? Number.NaN);
  }
  return text.length === 0 ? undefined : ms(total);
}

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/^(?:ms|msecs?|millis|milliseconds?)$/i, "ms"],
  [/^(?:s|secs?|seconds?)$/i, "s"],
  [/^(?:m|mins?|minutes?)$/i, "m"],
  [/^(?:h|hrs?|hours?)$/i, "h"],
];

/** What a text that is not a duration probably means: `10s` for `10 seconds`, `48h` for `2d`; `undefined` if that is unclear. */
export function intendedDuration(text: string): string | undefined {
  const [, number = "", word = ""] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text) ?? [];
  if (number === "") return undefined;
  if (word === "") return `${number}s`;
  if (/^(?:d|days?)$/i.test(word)) return `${Number(number) * 24}h`;
  const unit = WORDS.find(([pattern]) => pattern.test(word))?.[1];
  return unit && number + unit;
}

/**
 * Milliseconds as Go writes durations, which dumps show and `parseDuration` reads: `500ms`, `5s`, `3m0s`, `1h0m0s`. The
 * largest unit decides which smaller ones follow; nothing is finer than a nanosecond.
 */
export function formatDuration(ms: number): string {
  const nanos = Math.round(ms * 1e6);
  if (nanos === 0) return "0s";
  if (nanos < 1e3) return `${nanos}ns`;
  if (nanos < 1e6) return `${nanos / 1e3}µs`;
  if (nanos < 1e9) return `${nanos / 1e6}ms`;
  const minutes = Math.floor(nanos / 6e10);
  const seconds = `${(nanos % 6e10) / 1e9}s`;
  if (minutes === 0) return seconds;
  const hours = Math.floor(minutes / 60);
  return hours === 0 ? `${minutes}m${seconds}` : `${hours}h${minutes % 60}m${seconds}`;
}

/** A configuration for dumps and traces: the named fields, which hold milliseconds, become texts such as `1m30s`. */
export function withDurations<Config extends object>(
  config: Config,
  ...fields: readonly (keyof Config)[]
): Readonly<Record<string, unknown>> {
  const times = fields.flatMap((field) => {
    const value = config[field];
    return typeof value === "number" ? [[field, formatDuration(value)] as const] : [];
  });
  return { ...config, ...Object.fromEntries(times) };
}
