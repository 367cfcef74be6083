import { counted } from "../base/counted.ts";
import { type FollowLayout, followLayout, type Size } from "./layout.ts";
import {
  type Action,
  findProblem,
  initialState,
  type KeyAction,
  type Move,
  moveTarget,
  reduce,
  type State,
  sizeOfList,
  statusText,
  type Typing,
  topFor,
} from "./reducer.ts";
import {
  type FollowedEvent,
  type FollowedRequest,
  factsOf,
  matchesFilter,
  NO_REQUESTS,
  type RequestList,
  withEvent,
} from "./requests.ts";

/**
 * The state of the view of many requests, around that of the selected request. Events only join the list; what is shown of it is brought
 * up to date by `settled`, once before each drawing and each key.
 */
export interface FollowState {
  readonly title: string;
  readonly list: RequestList;
  /** The keys go to the list of requests, not to the panes of the selected one. */
  readonly onList: boolean;
  /** The newest request is selected, and is dropped last. Otherwise the list stands still. */
  readonly following: boolean;
  /** The number of the selected request; 0 while there is none. */
  readonly selected: number;
  /** The number of the request on the first line. */
  readonly top: number;
  /** Words that listed requests have. */
  readonly filter: string;
  /** The filter is being typed. */
  readonly filtering: boolean;
  /** The selected request, once `settled`. Its notice, help and search are those of the whole view. */
  readonly trace: State;
  /** The number of the request in `trace`. */
  readonly traced: number;
  /** What the stream did not bring, until the next key. */
  readonly missing: string | undefined;
  /** Why no more requests come; undefined while they do. */
  readonly ended: string | undefined;
}

export type FollowAction =
  | KeyAction
  | { readonly type: "followed"; readonly event: FollowedEvent }
  | { readonly type: "missing"; readonly text: string }
  | { readonly type: "streamEnded"; readonly why: string }
  /** Goes to the next pane, and back. */
  | { readonly type: "entered" }
  | { readonly type: "left" };

export function initialFollow(title: string, size: Size): FollowState {
  return {
    title,
    list: NO_REQUESTS,
    onList: true,
    following: true,
    selected: 0,
    top: 0,
    filter: "",
    filtering: false,
    trace: initialState("", size),
    traced: 0,
    missing: undefined,
    ended: undefined,
  };
}

export function reduceFollow(state: FollowState, action: FollowAction): FollowState {
  switch (action.type) {
    case "followed":
      return { ...state, list: withEvent(state.list, action.event, !state.following) };
    case "missing":
      return { ...state, missing: action.text };
    case "streamEnded":
      return { ...state, ended: action.why };
    case "entered":
      if (state.onList) return { ...still(state), onList: false };
      return state.trace.pane === "events" ? inTrace(state, { type: "paneSwitched" }) : state;
    case "left":
      if (state.onList) return { ...state, filter: "" };
      return state.trace.pane === "detail" ? inTrace(state, { type: "paneSwitched" }) : { ...state, onList: true };
    case "paneSwitched":
      if (state.onList) return { ...still(state), onList: false };
      return { ...inTrace(state, action), onList: state.trace.pane === "detail" };
    case "moved":
      return state.onList ? move(cleared(state), action.move) : inTrace(state, action);
    case "searchOpened":
      return state.onList ? { ...cleared(state), filtering: true, filter: "" } : inTrace(state, action);
    case "searchChanged":
      return state.filtering ? { ...state, filter: action.text } : inTrace(state, action);
    case "searchClosed":
      if (!state.filtering) return inTrace(state, action);
      return { ...state, filtering: false, filter: action.find ? state.filter : "" };
    case "foundNext":
      if (!state.onList) return inTrace(state, action);
      return action.what === "problem" ? nextProblem(cleared(state), action.forward) : state;
    default:
      return inTrace(state, action);
  }
}

/** Whether escape has somewhere to go back to. */
export function canGoBack({ onList, filter }: FollowState): boolean {
  return !onList || filter !== "";
}

export function typingOf({ filtering, filter, trace }: FollowState): Typing {
  const { typing, search, help } = trace;
  return filtering ? { typing: true, search: filter, help } : { typing, search, help };
}

function cleared(state: FollowState): FollowState {
  return { ...state, missing: undefined, trace: { ...state.trace, notice: undefined } };
}

/** A key for the panes of the selected request, which stays selected. */
function inTrace(state: FollowState, action: Action): FollowState {
  const next = { ...state, missing: undefined, trace: reduce(state.trace, action) };
  return state.onList ? next : still(next);
}

function still(state: FollowState): FollowState {
  return { ...state, following: false };
}

function move(state: FollowState, direction: Move): FollowState {
  const listed = listedRequests(state);
  const { lines } = followLayoutOf(state).requests;
  return select(state, moveTarget(selectedIndex(state), direction, lines - 1, Math.max(0, listed.length - 1)));
}

/** Selects a listed request; the last one is followed by newer ones. */
function select(state: FollowState, index: number): FollowState {
  const listed = listedRequests(state);
  const selected = listed[index]?.number ?? 0;
  return { ...state, selected, following: index >= listed.length - 1 };
}

function nextProblem(state: FollowState, forward: boolean): FollowState {
  const index = findProblem(listedRequests(state), (each) => factsOf(each).severity, selectedIndex(state), forward);
  if (index !== undefined) return still(select(state, index));
  return { ...state, trace: { ...state.trace, notice: "no listed request has an error or a warning" } };
}

/** The list is asked for several times per drawing. */
const filtered = new WeakMap<readonly FollowedRequest[], { filter: string; listed: readonly FollowedRequest[] }>();

/** The requests that pass the filter. */
export function listedRequests({ list, filter }: FollowState): readonly FollowedRequest[] {
  const { requests } = list;
  if (filter.trim() === "") return requests;
  const before = filtered.get(requests);
  if (before?.filter === filter) return before.listed;
  const listed = requests.filter((request) => matchesFilter(request, filter.trim()));
  filtered.set(requests, { filter, listed });
  return listed;
}

/** The place of the selected request in the list, or of the one before it if it is not listed. */
export function selectedIndex(state: FollowState): number {
  const listed = listedRequests(state);
  if (state.following) return Math.max(0, listed.length - 1);
  return Math.max(
    0,
    listed.findLastIndex(({ number }) => number <= state.selected),
  );
}

/** The place of the request on the first line. */
export function topIndex(state: FollowState): number {
  const index = listedRequests(state).findIndex(({ number }) => number >= state.top);
  return Math.max(0, index);
}

export function followLayoutOf({ trace, onList }: FollowState): FollowLayout {
  return followLayout(trace.size, onList ? "requests" : trace.pane, sizeOfList(trace));
}

/** The state with the selected request's events, its panes in their place, and the selected line visible. */
export function settled(state: FollowState): FollowState {
  const listed = listedRequests(state);
  const index = selectedIndex(state);
  const trace = traceOf(state, listed[index]);
  const selected = listed[index]?.number ?? 0;
  const next = { ...state, trace, selected, traced: selected };
  const layout = followLayoutOf(next);
  const lines = Math.max(1, layout.requests.lines - 1);
  const top = topFor(topIndex(next), index, lines, listed.length);
  return {
    ...next,
    top: listed[top]?.number ?? 0,
    trace: reduce(trace, { type: "placed", layout: layout.trace }),
  };
}

/** The trace of the request: what it has already, and the events that have arrived since. */
function traceOf({ trace, traced }: FollowState, request: FollowedRequest | undefined): State {
  const { number = 0, pod = "", events = [], omitted = 0 } = request ?? {};
  const left = omitted === 0 ? "" : `${counted(omitted, "event")} not kept`;
  const title = number === 0 ? "" : [`#${number}`, pod, left].filter(Boolean).join(" · ");
  const same = number === traced ? { ...trace, title } : reduce(trace, { type: "emptied", title });
  // Older events have made room for newer ones.
  if (same.rows.length > 0 && events[same.rows.length - 1] !== same.rows.at(-1)?.event)
    return reduce(same, { type: "replaced", events });
  const news = events.slice(same.rows.length);
  return news.length === 0 ? same : reduce(same, { type: "events", events: news });
}

/** The last line: the message of the last key, what is missing, else what is listed and whether it follows. */
export function followStatus(state: FollowState): string {
  const { trace, missing, filtering, filter, following, ended, list } = state;
  if (filtering) return `/${filter}█`;
  if (trace.typing || trace.notice !== undefined) return statusText(trace);
  if (missing !== undefined) return missing;
  const { requests, gone, missed } = list;
  if (requests.length === 0) return ended ?? trace.progress ?? "waiting for requests";
  const count = counted(requests.length, "request");
  const newer = requests.length - 1 - selectedIndex({ ...state, filter: "" });
  return [
    filter === "" ? count : `${listedRequests(state).length} of ${count} with "${filter}"`,
    gone === 0 ? "" : `${gone} older gone`,
    missed === 0 ? "" : `${missed} not kept`,
    ended ?? (following ? "following the newest" : `standing still, ${newer} newer; G follows`),
  ]
    .filter(Boolean)
    .join(" · ");
}
