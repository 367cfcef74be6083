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
  const events = listHeight(height, active, list);
  return { stacked: true, compact, events: box(width, events), detail: box(width, height - events) };
}

/** The height of a list of events above the details: more if it is in use, and no more than it needs. */
function listHeight(height: number, active: Pane, list: ListSize): number {
  const share = Math.round(height * (active === "events" ? 0.55 : 0.3));
  return Math.max(4, Math.min(share, list.lines + 2));
}

/** Where the panes of the view of many requests go. */
export interface FollowLayout {
  /** `stacked`: two panes, one above the other; `beside`: the list of requests, and beside it the others; `columns`: all side by side. */
  readonly form: "stacked" | "beside" | "columns";
  readonly compact: boolean;
  /** All panes together. */
  readonly width: number;
  readonly height: number;
  /** The list of requests; it is not shown while it is not in use and the panes are stacked. */
  readonly requests: Area;
  /** The panes of the selected request; the details are not shown while the list of requests is. */
  readonly trace: Layout;
}

/** From this width there is room for three panes side by side. */
const THREE_COLUMNS = 160;

/**
 * On a wide terminal all panes are side by side, on one of medium width the list of requests stands beside the other two, and a narrow one
 * shows two panes: the list with the steps below it, or, while the keys go to one of these, the steps with the details.
 */
export function followLayout(size: Size, active: Pane | "requests", list: ListSize): FollowLayout {
  const inner = active === "requests" ? "events" : active;
  const stacked = layoutOf({ ...size, columns: Math.min(size.columns, SIDE_BY_SIDE - 1) }, inner, list);
  const { compact } = stacked;
  const width = Math.max(size.columns, 20);
  const height = stacked.events.height + stacked.detail.height;
  const whole = { compact, width, height };
  if (width < SIDE_BY_SIDE) {
    if (active !== "requests") return { ...whole, form: "stacked", requests: box(width, height), trace: stacked };
    const above = Math.round(height * 0.55);
    const trace = { ...stacked, events: box(width, height - above) };
    return { ...whole, form: "stacked", requests: box(width, above), trace };
  }
  if (width < THREE_COLUMNS) {
    const left = Math.round(width * 0.42);
    const events = listHeight(height, inner, list);
    const [above, below] = [box(width - left, events), box(width - left, height - events)];
    return {
      ...whole,
      form: "beside",
      requests: box(left, height),
      trace: { stacked: true, compact, events: above, detail: below },
    };
  }
  const left = Math.round(width * 0.36);
  const middle = Math.round(width * 0.36);
  const [events, detail] = [box(middle, height), box(width - left - middle, height)];
  return { ...whole, form: "columns", requests: box(left, height), trace: { stacked: false, compact, events, detail } };
}

/** A pane of this outer size. */
export function box(width: number, height: number): Area {
  return { width, height, textWidth: Math.max(1, width - FRAME), lines: Math.max(1, height - 2) };
}

/** The lines of the event list: columns `#`, milliseconds since the start, `Type` and `Summary`. */

/** Widths of the columns of numbers and bars. */
interface Columns {
  readonly number: number;
  readonly time: number;
  /** 0: there are no bars. */
  readonly bar: number;
  /** Microseconds that a whole bar stands for. */
  readonly total: number;
}

/** The columns of a list that ends with this row: numbers and times only grow. */
export function columnsFor(last: Row | undefined, bar: number): Columns {
  const time = Math.max(5, milliseconds(last?.end).length);
  return { number: String(last?.number ?? 0).length, time, bar, total: last?.end ?? 0 };
}

/** The header of the list. */
export function listHeader({ number, time, bar }: Columns): string {
  const bars = bar === 0 ? "" : `${" ".repeat(bar)}  `;
  return ` ${"#".padStart(number)}  ${"ms".padStart(time)}  ${bars}${"Type".padEnd(LABEL_WIDTH)}  Summary`;
}

/** One line of the list, not cut. */
export function listLine(row: Row, { number, time, bar, total }: Columns, selected: boolean): string {
  const mark = selected ? "›" : " ";
  const place = `${mark}${String(row.number).padStart(number)}  ${milliseconds(row.end).padStart(time)}`;
  const bars = bar === 0 ? "" : `${barOf(row.began, row.end ?? row.began, total, bar)}  `;
  return `${place}  ${bars}${fit(row.label, LABEL_WIDTH)}  ${row.summary}`;
}

/** When a step began and how long it took, as a bar in a line of `width` columns that stands for `total`. At least half a column. */
function barOf(from: number, to: number, total: number, width: number): string {
  const halves = 2 * width;
  const scale = total > 0 ? halves / total : 0;
  const first = Math.min(Math.floor(from * scale), halves - 1);
  const end = Math.max(Math.ceil(to * scale), first + 1);
  return Array.from({ length: width }, (_, column) => {
    const [left, right] = [2 * column, 2 * column + 1].map((half) => half >= first && half < end);
    return left ? (right ? "█" : "▌") : right ? "▐" : " ";
  }).join("");
}

/** The size of a list with so many rows, of which the longest summary has `widest` columns. */
export function listSize(columns: Columns, widest: number, rows: number): ListSize {
  return {
    columns: columnsOf(listHeader(columns)) - "Summary".length + Math.max(widest, "Summary".length),
    lines: rows + 1,
  };
}
