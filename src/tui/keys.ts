import type { Key } from "ink";
import type { Action } from "./reducer.ts";

/** What a key asks for besides a change of state. */
export type Command = "quit" | "interrupt" | "copy";

const LETTERS: Readonly<Record<string, Action | Command>> = {
  q: "quit",
  c: "copy",
  e: { type: "modeChosen", mode: "raw" },
  s: { type: "modeChosen", mode: "snapshot" },
  d: { type: "modeChosen", mode: "diff" },
  f: { type: "formatToggled" },
};

type Named = Pick<Key, "upArrow" | "downArrow" | "pageUp" | "pageDown" | "home" | "end" | "tab" | "escape" | "ctrl">;

/** What the keys of one read ask for, in order; letters typed fast arrive together. */
export function keysToActions(input: string, key: Named): readonly (Action | Command)[] {
  if (key.ctrl) return input === "c" ? ["interrupt"] : [];
  if (key.escape) return ["quit"];
  if (key.tab) return [{ type: "paneSwitched" }];
  if (key.upArrow) return [{ type: "moved", move: "up" }];
  if (key.downArrow) return [{ type: "moved", move: "down" }];
  if (key.pageUp) return [{ type: "moved", move: "pageUp" }];
  if (key.pageDown) return [{ type: "moved", move: "pageDown" }];
  if (key.home) return [{ type: "moved", move: "home" }];
  if (key.end) return [{ type: "moved", move: "end" }];
  return Array.from(input).flatMap((letter) => LETTERS[letter] ?? []);
}
