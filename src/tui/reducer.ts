import { counted } from "../base/counted.ts";
import type { Fields } from "../base/fields.ts";
import { type Detail, type DetailLine, detailOf, hangingIndent, type Mode, treeOf } from "../report/detail.ts";
import { type Format, READINGS } from "../report/formats.ts";
import { outcomeOf } from "../report/outcome.ts";
import { changesNothing, problemRow, type Row, rowsOf } from "../report/rows.ts";
import { columnsOf, wrapHanging } from "../report/text.ts";
import { columnsFor, type Layout, layoutOf, listSize, type Pane, type Size } from "./layout.ts";

/** The state of the trace view and everything that changes it; no terminal, no clock, no input or output. */

export interface State {
  readonly title: string;
  /** The trace shows secrets: it was opened with `--reveal`. */
  readonly revealed: boolean;
  readonly rows: readonly Row[];
  /** The rows in the list: all, or all but the snapshots that change nothing. */
  readonly listed: readonly Row[];
  /** Snapshots that change nothing are not listed. */
  readonly brief: boolean;
  /** Columns of the longest summary. */
  readonly widest: number;
  /** Index into `listed`; 0 while that is empty. */
  readonly selected: number;
  /** First visible row of the event list: an index into `listed`. */
  readonly eventsTop: number;
  /** First visible line of the detail pane. */
  readonly detailTop: number;
  readonly pane: Pane;
  readonly mode: Mode;
  readonly format: Format;
  readonly size: Size;
  /** Where the panes are in the view of many requests; undefined: they fill the terminal, as their content requires. */
  readonly placed: Layout | undefined;
  /** Progress of the client: `request sent, waiting for trace to complete`. */
  readonly progress: string | undefined;
  readonly ended: boolean;
  /** The message that the last key caused, until the next key. */
  readonly notice: string | undefined;
  /** The list of keys covers the panes. */
  readonly help: boolean;
  /** The text of the last search. */
  readonly search: string;
  /** The search is being typed. */
  readonly typing: boolean;
  /** The line of the details that the last search found. */
  readonly foundLine: number | undefined;
}

/** What the meaning of keys depends on: the text that is being typed, and whether the help is shown. */
export type Typing = Pick<State, "typing" | "search" | "help">;

export type Move = "up" | "down" | "pageUp" | "pageDown" | "home" | "end";

/** What keys and the terminal change. */
export type KeyAction =
  | { readonly type: "resized"; readonly size: Size }
  | { readonly type: "paneSwitched" }
  | { readonly type: "moved"; readonly move: Move }
  | { readonly type: "modeChosen"; readonly mode: Mode }
  | { readonly type: "formatToggled" }
  | { readonly type: "briefToggled" }
  | { readonly type: "noticed"; readonly text: string }
  | { readonly type: "helpToggled" }
  | { readonly type: "searchOpened" }
  | { readonly type: "searchChanged"; readonly text: string }
  | { readonly type: "searchClosed"; readonly find: boolean }
  | { readonly type: "foundNext"; readonly what: "match" | "problem"; readonly forward: boolean };

export type Action =
  | KeyAction
  | { readonly type: "events"; readonly events: readonly Fields[] }
  /** In place of those before; the selected one stays selected if it is among them. */
  | { readonly type: "replaced"; readonly events: readonly Fields[] }
  | { readonly type: "problem"; readonly text: string }
  | { readonly type: "progress"; readonly text: string }
  | { readonly type: "headed"; readonly text: string; readonly revealed: boolean }
  | { readonly type: "titled"; readonly title: string }
  | { readonly type: "ended" }
  | { readonly type: "placed"; readonly layout: Layout }
  | { readonly type: "emptied"; readonly title: string };

export function initialState(title: string, size: Size, revealed = false): State {
  return {
    ...NO_EVENTS,
    title,
    revealed,
    brief: false,
    pane: "events",
    mode: "raw",
    format: "yaml",
    size,
    placed: undefined,
    progress: undefined,
    ended: false,
    notice: undefined,
    help: false,
    search: "",
    typing: false,
  };
}

/** The parts of the state that depend on the events. */
const NO_EVENTS = {
  rows: [],
  listed: [],
  widest: 0,
  selected: 0,
  eventsTop: 0,
  detailTop: 0,
  foundLine: undefined,
} as const;

export function reduce(state: State, action: Action): State {
  switch (action.type) {
    case "events":
      return append(state, rowsOf(action.events, state.rows.at(-1)));
    case "replaced":
      return replaced(state, rowsOf(action.events));
    case "problem":
      return append(state, [problemRow(action.text, state.rows.at(-1))]);
    case "progress":
      return { ...state, progress: action.text };
    case "headed":
      return { ...state, progress: action.text, revealed: action.revealed };
    case "titled":
      return { ...state, title: action.title };
    case "ended":
      return { ...state, ended: true };
    case "resized":
      return scrolled({ ...state, size: action.size, foundLine: undefined });
    case "placed":
      return scrolled({ ...state, placed: action.layout });
    case "emptied":
      return { ...state, ...NO_EVENTS, title: action.title };
    case "paneSwitched":
      return scrolled({ ...state, ...cleared, pane: state.pane === "events" ? "detail" : "events" });
    case "moved":
      return move({ ...state, ...cleared }, action.move);
    case "modeChosen":
      return { ...state, ...cleared, mode: action.mode, detailTop: 0 };
    case "formatToggled":
      return { ...state, ...cleared, format: state.format === "yaml" ? "json" : "yaml", detailTop: 0 };
    case "briefToggled":
      return toggleBrief({ ...state, ...cleared });
    case "noticed":
      return { ...state, notice: action.text };
    case "helpToggled":
      return { ...state, help: !state.help };
    case "searchOpened":
      return { ...state, ...cleared, typing: true, search: "" };
    case "searchChanged":
      return { ...state, search: action.text };
    case "searchClosed":
      return action.find ? find({ ...state, typing: false }, true) : { ...state, typing: false, search: "" };
    case "foundNext":
      return action.what === "match" ? find(state, action.forward) : nextProblem(state, action.forward);
  }
}

/** The parts of the state that every key resets. */
const cleared = { notice: undefined, foundLine: undefined } as const;

export function layout(state: State): Layout {
  return state.placed ?? layoutOf(state.size, state.pane, sizeOfList(state));
}

/** The columns of the event list; with bars only in the view of many requests. */
export function listColumns({ rows, placed }: State): ReturnType<typeof columnsFor> {
  const bar = placed === undefined ? 0 : Math.min(Math.max(Math.floor(placed.events.textWidth / 5), 8), 24);
  return columnsFor(rows.at(-1), bar);
}

/** The size of the whole event list. */
export function sizeOfList(state: State): ReturnType<typeof listSize> {
  return listSize(listColumns(state), state.widest, state.listed.length);
}

export function detail(state: State): Detail {
  const { rows, listed, selected, mode, format } = state;
  return mode === "tree" ? treeOf(rows) : detailOf(listed[selected], mode, READINGS[format]);
}

export interface WrappedLine extends DetailLine {
  /** The rest of the line above. */
  readonly continued: boolean;
}

/** The lines of the detail pane as they fit its width. */
export function wrappedDetail(state: State): readonly WrappedLine[] {
  const width = layout(state).detail.textWidth;
  return detail(state).lines.flatMap((line) =>
    wrapHanging(line.text, width, hangingIndent(line)).map((text, index) => ({ ...line, text, continued: index > 0 })),
  );
}

/** The last line: the message of the last key, else the state of the stream. */
export function statusText(state: State): string {
  if (state.typing) return `/${state.search}█`;
  if (state.notice !== undefined) return state.notice;
  const count = state.rows.length;
  const events = counted(count, "event");
  if (state.ended) return `${events} · stream complete, press q to exit`;
  if (state.progress !== undefined) return count === 0 ? state.progress : `${events} · ${state.progress}`;
  return count === 0 ? "waiting for trace data" : events;
}

function replaced(state: State, rows: readonly Row[]): State {
  const next = append({ ...state, ...NO_EVENTS }, rows);
  // The last one is followed by newer ones.
  const event = state.listed.slice(0, -1)[state.selected]?.event;
  const selected = next.listed.findIndex((row) => row.event === event);
  if (selected === -1) return next;
  const { detailTop, foundLine } = state;
  return scrolled({ ...next, selected, detailTop, foundLine });
}

/** Follows new events while the last row is selected; at the end of the request, selects the one that decided the outcome. */
function append(state: State, added: readonly Row[]): State {
  const follows = state.selected >= state.listed.length - 1;
  const rows = [...state.rows, ...added];
  const news = state.brief ? added.filter((row) => !changesNothing(row)) : added;
  const listed = [...state.listed, ...news];
  const widest = added.reduce((most, { summary }) => Math.max(most, columnsOf(summary)), state.widest);
  const appended = { ...state, rows, listed, widest };
  if (!follows || news.length === 0) return appended;
  const ends = added.some(({ message }) => message.type === "requestFinished");
  const decider = ends ? outcomeOf(rows).decider : undefined;
  const selected = decider === undefined ? listed.length - 1 : listed.indexOf(decider);
  return scrolled({ ...appended, selected, detailTop: 0 });
}

/** The selection stays, or moves to the row before one that is no longer listed. */
function toggleBrief(state: State): State {
  const brief = !state.brief;
  const listed = brief ? state.rows.filter((row) => !changesNothing(row)) : state.rows;
  const number = state.listed[state.selected]?.number ?? 0;
  const selected = Math.max(
    0,
    listed.findLastIndex((row) => row.number <= number),
  );
  const hidden = state.rows.length - listed.length;
  const notice = hidden === 0 ? "every snapshot changes something" : `${hidden} hidden: snapshots that change nothing`;
  return select({ ...state, brief, listed, ...(brief && { notice }) }, selected);
}

function move(state: State, direction: Move): State {
  if (state.pane === "detail") {
    const { lines } = layout(state).detail;
    const most = Math.max(0, wrappedDetail(state).length - lines);
    return { ...state, detailTop: moveTarget(state.detailTop, direction, lines, most) };
  }
  const { lines } = layout(state).events;
  const selected = moveTarget(state.selected, direction, lines - 1, Math.max(0, state.listed.length - 1));
  return selected === state.selected ? state : select(state, selected);
}

function select(state: State, selected: number): State {
  return scrolled({ ...state, selected, detailTop: 0 });
}

/** Selects the next match in the active pane. */
function find(state: State, forward: boolean): State {
  const { search } = state;
  if (search === "") return { ...state, notice: "nothing to search for; / begins a search" };
  const missing = { ...state, ...cleared, notice: `no match for ${search}` };
  if (state.pane === "events") {
    const row = findRow(state.listed, search, state.selected, forward);
    return row === undefined ? missing : select({ ...state, ...cleared }, row);
  }
  const from = state.foundLine ?? state.detailTop - 1;
  const line = findLine(wrappedDetail(state), search, from, forward);
  return line === undefined ? missing : scrolled({ ...state, ...cleared, foundLine: line, detailTop: line });
}

function nextProblem(state: State, forward: boolean): State {
  const row = findProblem(state.listed, ({ severity }) => severity, state.selected, forward);
  if (row === undefined) return { ...state, notice: "no error or warning in this trace" };
  return select({ ...state, ...cleared }, row);
}

/** Where a move leads in a list with the indexes 0 to `most`, of which a page shows `page`. */
export function moveTarget(from: number, direction: Move, page: number, most: number): number {
  const step = Math.max(1, page - 1);
  const moved = { up: from - 1, down: from + 1, pageUp: from - step, pageDown: from + step, home: 0, end: most };
  return Math.min(Math.max(moved[direction], 0), most);
}

/** The first visible line nearest to `top` with which the selected one is visible, and no line at the end stays empty. */
export function topFor(top: number, selected: number, lines: number, total: number): number {
  return Math.min(Math.max(top, selected - lines + 1), selected, Math.max(0, total - lines));
}

/** Adjusts both offsets so that the selection is visible and no pane is scrolled past its end. */
function scrolled(state: State): State {
  // The event list spends one line on its header.
  const lines = Math.max(1, layout(state).events.lines - 1);
  const eventsTop = topFor(state.eventsTop, state.selected, lines, state.listed.length);
  const most = Math.max(0, wrappedDetail(state).length - layout(state).detail.lines);
  return { ...state, eventsTop, detailTop: Math.min(state.detailTop, most) };
}

/** Finding rows and lines, in either direction and around the end. */

/** The next row after `from` whose label, summary or event holds the text, whatever its case. */
function findRow(rows: readonly Row[], text: string, from: number, forward: boolean): number | undefined {
  const wanted = text.toLowerCase();
  return around(rows, from, forward, (row) => searchable(row).toLowerCase().includes(wanted));
}

/** The next item after `from` with an error or a warning. */
export function findProblem<T>(
  items: readonly T[],
  severityOf: (item: T) => Row["severity"],
  from: number,
  forward: boolean,
): number | undefined {
  return around(items, from, forward, (item) => ["error", "warn"].includes(severityOf(item)));
}

/** The next line after `from` that holds the text, whatever its case. */
function findLine(
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
