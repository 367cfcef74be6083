import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { renderToString } from "ink";
import { createElement as h } from "react";
import { loaded } from "../fixtures/trace.ts";
import { type Action, initialState, reduce, type State } from "../reducer.ts";
import { themeOf } from "./theme.ts";
import { TraceScreen } from "./trace-screen.ts";

function draw(state: State): string {
  const screen = h(TraceScreen, { state, theme: themeOf(true), onInput: () => {} });
  return stripVTControlCharacters(renderToString(screen, { columns: state.size.columns }));
}

const after = (state: State, ...actions: Action[]) => actions.reduce(reduce, state);
const up = (times: number) => Array.from({ length: times }, () => ({ type: "moved", move: "up" }) as const);

/** Screens as people see them; when a change is meant, print `draw(...)` and look at it before it is stored. */
const SCREENS: Readonly<Record<string, State>> = {
  "80x24": loaded(80, 24),
  "80x24-route": after(loaded(80, 24), ...up(9), { type: "paneSwitched" }),
  "140x40-diff": after(loaded(140, 40), ...up(5), { type: "modeChosen", mode: "diff" }),
  "80x24-tree": after(loaded(80, 24), { type: "modeChosen", mode: "tree" }),
  "60x16-waiting": initialState("http://localhost:15000", { columns: 60, rows: 16 }),
};

for (const [name, state] of Object.entries(SCREENS)) {
  test(`the screen ${name} looks as stored`, () => {
    const stored = readFileSync(new URL(`../fixtures/screen-${name}.txt`, import.meta.url), "utf8");
    assert.equal(`${draw(state)}\n`, stored);
  });
}

test("the screen has the terminal's width and leaves its last row free, at every size", () => {
  for (const [columns, rows] of [
    [40, 12],
    [80, 24],
    [109, 30],
    [110, 30],
    [200, 60],
  ] as const) {
    const lines = draw(loaded(columns, rows)).split("\n");
    assert.equal(lines.length, rows - 1, `${columns}x${rows}`);
    for (const line of lines) assert.ok(line.length <= columns, `${columns}x${rows}: ${line}`);
  }
});
