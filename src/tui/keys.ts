import type { Key } from "ink";
import type { Action, State } from "./reducer.ts";

/** A key with an effect outside the state. */
export type Command = "quit" | "interrupt" | "suspend" | "copy" | "copyCurl" | "save";

const LETTERS: Readonly<Record<string, Action | Command>> = {
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
};

/** The keys of the help screen; those with `short` also stand in the line below the panes if there is room. */
export const HELP: readonly { readonly keys: string; readonly does: string; readonly short?: string }[] = [
  { keys: "q, escape", does: "quit", short: "q: quit" },
  { keys: "?", does: "show or hide these keys", short: "?: help" },
  { keys: "tab", does: "switch between the list of events and the details", short: "tab: pane" },
  { keys: "↑ ↓, k j", does: "move by one line in that pane", short: "↑↓: move" },
  { keys: "page up, page down", does: "move by one page" },
  { keys: "g, home / G, end", does: "go to the beginning / the end" },
  { keys: "] / [", does: "go to the next / previous error or warning", short: "]: error" },
  { keys: "/", does: "search in that pane; enter finds, escape cancels", short: "/: search" },
  { keys: "n / N", does: "go to the next / previous match" },
  { keys: "e", does: "details: the event, its body decoded", short: "e/s/d/t: mode" },
  { keys: "s", does: "details: the state of the request or response as of this event" },
  { keys: "d", does: "details: what changed in that state since the snapshot before" },
  { keys: "t", does: "details: all decisions about the request as a tree" },
  { keys: "f", does: "YAML or JSON", short: "f: format" },
  { keys: "u", does: "hide or show the snapshots that change nothing" },
  { keys: "c", does: "copy the details to the clipboard", short: "c: copy" },
  { keys: "y", does: "copy the request as a curl command" },
  { keys: "w", does: "save the trace to a file in the current folder", short: "w: save" },
  { keys: "Ctrl-Z", does: "suspend; fg comes back" },
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
export function keysToActions(
  input: string,
  key: Named,
  state: Pick<State, "typing" | "search" | "help">,
): readonly (Action | Command)[] {
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
  if (slash === -1) return letters(input);
  // What follows the slash in the same read is the text of the search.
  return [
    ...letters(input.slice(0, slash + 1)),
    ...(input.length > slash + 1 ? typed(input.slice(slash + 1), key, "") : []),
  ];
}

function letters(input: string): readonly (Action | Command)[] {
  return Array.from(input).flatMap((letter) => LETTERS[letter] ?? []);
}

/** Keys while a search is typed. A pasted text may end in the line break that finds. */
function typed(input: string, key: Named, search: string): readonly Action[] {
  if (key.escape) return [{ type: "searchClosed", find: false }];
  if (key.return) return [{ type: "searchClosed", find: true }];
  if (key.backspace || key.delete) return [{ type: "searchChanged", text: Array.from(search).slice(0, -1).join("") }];
  const [text = "", ...more] = input.split(/[\r\n]/);
  // Control characters are keys without a meaning here.
  const changed: Action = { type: "searchChanged", text: search + text.replace(/\p{Cc}/gu, "") };
  return more.length === 0 ? [changed] : [changed, { type: "searchClosed", find: true }];
}
