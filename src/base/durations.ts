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

/** Parses a Go-style duration (`1s`, `500ms`, `1h30m`, `0`) to milliseconds; `undefined` when it is not one or negative. */
export function parseDuration(text: string): number | undefined {
  if (text === "0") return 0;
  let total = 0;
  PART.lastIndex = 0;
  while (PART.lastIndex < text.length) {
    const match = PART.exec(text);
    if (match === null) return undefined;
    total += Number(match[1]) * (UNITS[match[2] ?? ""] ?? Number.NaN);
  }
  return text.length === 0 ? undefined : total;
}
