import type { Key } from "ink";
import { canGoBack, type FollowAction, type FollowState, typingOf } from "./follow-reducer.ts";
import type { KeyAction, Typing } from "./reducer.ts";

/** A key with an effect outside the state. */
export type Command = "quit" | "interrupt" | "suspend" | "copy" | "copyCurl" | "save";

const LETTERS: Readonly<Record<string, KeyAction | Command>> = {
  q: "quit",
  c: "copy",
  y: "copyCurl",
  w: "save",
  e: { type: "modeChosen", mode: "raw" },
  s: { type: "modeChosen", mode: "snapshot" },
  d: { type: "modeChosen", mode: "diff" },
  t: { type: "modeChosen", mode: "tree" },
  f: { type: "formatToggled" },
  u: { type: "briefToggled" },
  j: { type: "moved", move: "down" },
  k: { type: "moved", move: "up" },
  g: { type: "moved", move: "home" },
  G: { type: "moved", move: "end" },
  "/": { type: "searchOpened" },
  n: { type: "foundNext", what: "match", forward: true },
  N: { type: "foundNext", what: "match", forward: false },
  "]": { type: "foundNext", what: "problem", forward: true },
  "[": { type: "foundNext", what: "problem", forward: false },
  "?": { type: "helpToggled" },
  // Alone it is a named key; typed fast before others, a character.
  "\t": { type: "paneSwitched" },
};

/** A line of the help screen; one with `short` also stands in the line below the panes if there is room. */
export interface KeyHelp {
  readonly keys: string;
  readonly does: string;
  readonly short?: string;
}

/** The keys that both views share. */
const SHARED: readonly KeyHelp[] = [
  { keys: "n / N", does: "go to the next / previous match" },
  { keys: "e", does: "details: the event, its body decoded", short: "e/s/d/t: mode" },
  { keys: "s", does: "details: the request or response as of this event" },
  { keys: "d", does: "details: what changed in it since the snapshot before" },
  { keys: "t", does: "details: all decisions about the request as a tree" },
  { keys: "f / u", does: "YAML or JSON / without snapshots that change nothing", short: "f: format" },
  { keys: "c / y", does: "copy the details / the request as a curl command", short: "c: copy" },
  { keys: "w", does: "save the trace to a file in the current folder", short: "w: save" },
  { keys: "Ctrl-Z", does: "suspend; fg comes back" },
];

const QUESTION: KeyHelp = { keys: "?", does: "show or hide these keys", short: "?: help" };
const MOVE: KeyHelp = {
  keys: "↑ ↓, k j",
  does: "move by one line in that pane; page up and down by a page",
  short: "↑↓: move",
};

/** The keys of the view of one request. */
export const HELP: readonly KeyHelp[] = [
  { keys: "q, escape", does: "quit", short: "q: quit" },
  QUESTION,
  { keys: "tab", does: "switch between the list of events and the details", short: "tab: pane" },
  MOVE,
  { keys: "g, home / G, end", does: "go to the beginning / the end" },
  { keys: "] / [", does: "go to the next / previous error or warning", short: "]: error" },
  { keys: "/", does: "search in that pane; enter finds, escape cancels", short: "/: search" },
  ...SHARED,
];

/** The keys of the view of many requests. */
export const FOLLOW_HELP: readonly KeyHelp[] = [
  { keys: "q", does: "quit", short: "q: quit" },
  QUESTION,
  { keys: "tab, enter", does: "from the requests to the events and the details", short: "enter: open" },
  { keys: "escape", does: "back to the requests; there, show all of them, or quit" },
  MOVE,
  { keys: "g, home / G, end", does: "go to the beginning / the end, where the list follows", short: "G: follow" },
  { keys: "] / [", does: "go to the next / previous error or warning", short: "]: error" },
  { keys: "/", does: "list only requests with these words; elsewhere, search", short: "/: filter" },
  ...SHARED,
];

export type Named = Pick<
  Key,
  | "upArrow"
  | "downArrow"
  | "pageUp"
  | "pageDown"
  | "home"
  | "end"
  | "tab"
  | "escape"
  | "ctrl"
  | "return"
  | "backspace"
  | "delete"
>;

/** The actions and commands of one read from the terminal, in order: letters typed fast arrive together. */
export function keysToActions(input: string, key: Named, state: Typing): readonly (KeyAction | Command)[] {
  return actionsOf(input, key, state, LETTERS);
}

/** The same in the view of many requests, where enter opens and escape goes back. */
export function followKeys(input: string, key: Named, state: FollowState): readonly (FollowAction | Command)[] {
  const typing = typingOf(state);
  if (key.escape && !key.ctrl && !typing.help && !typing.typing && canGoBack(state)) return [{ type: "left" }];
  return actionsOf<FollowAction>(input, key, typing, FOLLOW_LETTERS);
}

const FOLLOW_LETTERS: Readonly<Record<string, FollowAction | Command>> = { ...LETTERS, "\r": { type: "entered" } };

function actionsOf<A>(
  input: string,
  key: Named,
  state: Typing,
  letters: Readonly<Record<string, A | KeyAction | Command>>,
): readonly (A | KeyAction | Command)[] {
  if (key.ctrl) return input === "c" ? ["interrupt"] : input === "z" ? ["suspend"] : [];
  if (state.help) return [{ type: "helpToggled" }];
  if (state.typing) return typed(input, key, state.search);
  if (key.escape) return ["quit"];
  if (key.tab) return [{ type: "paneSwitched" }];
  if (key.upArrow) return [{ type: "moved", move: "up" }];
  if (key.downArrow) return [{ type: "moved", move: "down" }];
  if (key.pageUp) return [{ type: "moved", move: "pageUp" }];
  if (key.pageDown) return [{ type: "moved", move: "pageDown" }];
  if (key.home) return [{ type: "moved", move: "home" }];
  if (key.end) return [{ type: "moved", move: "end" }];
  const slash = input.indexOf("/");
  // What follows the slash in the same read is the text of the search.
  const before = slash === -1 ? input : input.slice(0, slash + 1);
  return [
    ...Array.from(before).flatMap((letter) => letters[letter] ?? []),
    ...(slash !== -1 && input.length > slash + 1 ? typed(input.slice(slash + 1), key, "") : []),
  ];
}

/** Keys while a search is typed. A pasted text may end in the line break that finds. */
function typed(input: string, key: Named, search: string): readonly KeyAction[] {
  if (key.escape) return [{ type: "searchClosed", find: false }];
  if (key.return) return [{ type: "searchClosed", find: true }];
  if (key.backspace || key.delete) return [{ type: "searchChanged", text: Array.from(search).slice(0, -1).join("") }];
  const [text = "", ...more] = input.split(/[\r\n]/);
  // Control characters are keys without a meaning here.
  const changed: KeyAction = { type: "searchChanged", text: search + text.replace(/\p{Cc}/gu, "") };
  return more.length === 0 ? [changed] : [changed, { type: "searchClosed", find: true }];
}
