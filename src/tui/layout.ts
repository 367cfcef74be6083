import type { Row } from "../report/rows.ts";
import { LABEL_WIDTH } from "../report/summaries.ts";
import { columnsOf, fit, milliseconds } from "../report/text.ts";

export type Pane = "events" | "detail";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A framed pane: outer width and height, and how many lines and columns of text fit inside. */
export interface Area {
  readonly width: number;
  readonly height: number;
  readonly textWidth: number;
  readonly lines: number;
}

export interface Layout {
  readonly stacked: boolean;
  /** The footer has only its status line: the terminal is low. */
  readonly compact: boolean;
  readonly events: Area;
  readonly detail: Area;
}

/** The size of the whole event list: columns of its longest line, and lines. */
interface ListSize {
  readonly columns: number;
  readonly lines: number;
}

/** Below this width two panes side by side would cut most summaries. */
const SIDE_BY_SIDE = 110;
/** Below this height the key line is left out. */
const LOW = 20;
/** The request with its status, and what decided. */
const HEADER = 2;
const MIN_EVENTS_WIDTH = 44;
const FRAME = 4;

/**
 * Where the panes go: side by side on a wide terminal, else one above the other with more room for the one in use. The event
 * list takes no more than it needs, and at most three fifths of the width. The last row of the terminal stays free, because
 * output that fills the screen makes the renderer clear the terminal's scrollback.
 */
export function layoutOf(size: Size, active: Pane, list: ListSize): Layout {
  const width = Math.max(size.columns, 20);
  const compact = size.rows < LOW;
  const height = Math.max(size.rows - 1 - HEADER - (compact ? 1 : 2), 7);
  if (width >= SIDE_BY_SIDE) {
    const events = Math.min(Math.max(list.columns + FRAME, MIN_EVENTS_WIDTH), Math.floor((width * 3) / 5));
    return { stacked: false, compact, events: box(events, height), detail: box(width - events, height) };
  }
  const share = Math.round(height * (active === "events" ? 0.55 : 0.3));
  const events = Math.max(4, Math.min(share, list.lines + 2));
  return { stacked: true, compact, events: box(width, events), detail: box(width, height - events) };
}

function box(width: number, height: number): Area {
  return { width, height, textWidth: Math.max(1, width - FRAME), lines: Math.max(1, height - 2) };
}

/** The lines of the event list: columns `#`, milliseconds since the start, `Type` and `Summary`. */

/** Widths of the columns of numbers. */
interface Columns {
  readonly number: number;
  readonly time: number;
}

/** The widths for a list that ends with this row: numbers and times only grow. */
export function columnsFor(last: Row | undefined): Columns {
  return { number: String(last?.number ?? 0).length, time: Math.max(5, milliseconds(last?.end).length) };
}

/** The header of the list. */
export function listHeader({ number, time }: Columns): string {
  return ` ${"#".padStart(number)}  ${"ms".padStart(time)}  ${"Type".padEnd(LABEL_WIDTH)}  Summary`;
}

/** One line of the list, not cut. */
export function listLine(row: Row, { number, time }: Columns, selected: boolean): string {
  const mark = selected ? "›" : " ";
  const place = `${mark}${String(row.number).padStart(number)}  ${milliseconds(row.end).padStart(time)}`;
  return `${place}  ${fit(row.label, LABEL_WIDTH)}  ${row.summary}`;
}

/** The size of a list with so many rows, of which the longest summary has `widest` columns. */
export function listSize(columns: Columns, widest: number, rows: number): ListSize {
  return {
    columns: columnsOf(listHeader(columns)) - "Summary".length + Math.max(widest, "Summary".length),
    lines: rows + 1,
  };
}
