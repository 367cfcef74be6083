/** The lines of the event list: columns `#`, milliseconds since the start, `Type` and `Summary`. */
import { milliseconds } from "./duration.ts";
import type { Wanted } from "./layout.ts";
import type { Row } from "./rows.ts";
import { LABEL_WIDTH } from "./summaries.ts";
import { columnsOf, fit } from "./text.ts";

interface Columns {
  readonly number: number;
  readonly time: number;
}

function columnsFor(rows: readonly Row[]): Columns {
  const time = Math.max(5, ...rows.map((row) => milliseconds(row.end).length));
  return { number: String(rows.length).length, time };
}

/** The header of the list. */
export function listHeader(rows: readonly Row[]): string {
  const { number, time } = columnsFor(rows);
  return ` ${"#".padStart(number)}  ${"ms".padStart(time)}  ${"Type".padEnd(LABEL_WIDTH)}  Summary`;
}

/** One line of the list, as wide as it needs. */
export function listLine(rows: readonly Row[], index: number, selected: boolean): string {
  const row = rows[index];
  if (row === undefined) return "";
  const { number, time } = columnsFor(rows);
  const mark = selected ? "›" : " ";
  const place = `${mark}${String(index + 1).padStart(number)}  ${milliseconds(row.end).padStart(time)}`;
  return `${place}  ${fit(row.label, LABEL_WIDTH)}  ${row.summary}`;
}

/** The room that the whole list would take. */
export function wantedBy(rows: readonly Row[]): Wanted {
  const longest = Math.max(0, ...rows.map((row) => columnsOf(row.summary)));
  return {
    columns: columnsOf(listHeader(rows)) - "Summary".length + Math.max(longest, "Summary".length),
    lines: rows.length + 1,
  };
}
