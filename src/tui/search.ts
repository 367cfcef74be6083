/** Finding rows and lines, in either direction and around the end. */
import type { Row } from "./rows.ts";

/** The next row after `from` whose label, summary or event holds the text, whatever its case. */
export function findRow(rows: readonly Row[], text: string, from: number, forward: boolean): number | undefined {
  const wanted = text.toLowerCase();
  return around(rows, from, forward, (row) => searchable(row).toLowerCase().includes(wanted));
}

/** The next row after `from` that is not as it should be. */
export function findProblem(rows: readonly Row[], from: number, forward: boolean): number | undefined {
  return around(rows, from, forward, ({ severity }) => severity === "error" || severity === "warn");
}

/** The next line after `from` that holds the text, whatever its case. */
export function findLine(
  lines: readonly { readonly text: string }[],
  text: string,
  from: number,
  forward: boolean,
): number | undefined {
  const wanted = text.toLowerCase();
  return around(lines, from, forward, (line) => line.text.toLowerCase().includes(wanted));
}

/** Leaves out the base64 of bodies, which would match searches by chance. */
function searchable(row: Row): string {
  const event = JSON.stringify(row.message, (key, value: unknown) => (key === "body" ? undefined : value));
  return `${row.label} ${row.summary} ${event}`;
}

/** The index of the first match after `from`, which itself comes last. */
function around<T>(
  items: readonly T[],
  from: number,
  forward: boolean,
  matches: (item: T) => boolean,
): number | undefined {
  for (let step = 1; step <= items.length; step++) {
    const index = (from + (forward ? step : -step) + 2 * items.length) % items.length;
    const item = items[index];
    if (item !== undefined && matches(item)) return index;
  }
  return undefined;
}
