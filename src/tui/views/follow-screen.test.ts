import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { renderToString } from "ink";
import { createElement as h } from "react";
import { columnsOf } from "../../report/text.ts";
import { act, following } from "../fixtures/follow.ts";
import { type FollowAction, type FollowState, initialFollow, settled } from "../follow-reducer.ts";
import type { Size } from "../layout.ts";
import { FollowScreen } from "./follow-screen.ts";
import { themeOf } from "./theme.ts";

function draw(state: FollowState): string {
  const screen = h(FollowScreen, { state, theme: themeOf(true), onInput: () => {} });
  return stripVTControlCharacters(renderToString(screen, { columns: state.trace.size.columns }));
}

const REQUESTS = [
  { path: "/api/cart?debug=1", pod: "web-7d4b9-x2x5k", took: 11_362 },
  { path: "/admin/a/long/path/that/does/not/fit/into/its/column", status: 403, denied: true, pod: "web-7d4b9-m8q4z" },
  { path: "/漢字", status: 500, pod: "web-7d4b9-x2x5k", took: 289 },
];
const shown = (size: Size, ...actions: FollowAction[]) => act(following(size, ...REQUESTS), ...actions);
const UP: FollowAction = { type: "moved", move: "up" };

/** Screens as people see them; when a change is meant, print `draw(...)` and look at it before it is stored. */
const SCREENS: Readonly<Record<string, FollowState>> = {
  "80x24-requests": shown({ columns: 80, rows: 24 }, UP),
  "80x24-opened": shown({ columns: 80, rows: 24 }, UP, { type: "entered" }),
  "120x30-requests": shown({ columns: 120, rows: 30 }, UP),
  "180x20-requests": shown({ columns: 180, rows: 20 }, UP),
};

for (const [name, state] of Object.entries(SCREENS)) {
  test(`the screen ${name} looks as stored`, () => {
    const stored = readFileSync(new URL(`../fixtures/screen-${name}.txt`, import.meta.url), "utf8");
    assert.equal(`${draw(state)}\n`, stored);
  });
}

test("the screen has the terminal's width and leaves its last row free, at every size and in every pane", () => {
  for (const [columns, rows] of [
    [40, 12],
    [80, 24],
    [109, 30],
    [110, 30],
    [159, 40],
    [160, 40],
    [220, 60],
  ] as const) {
    const list = shown({ columns, rows });
    const events = act(list, { type: "entered" });
    const help = act(list, { type: "helpToggled" });
    const empty = settled(initialFollow("gateway/web", { columns, rows }));
    for (const state of [list, events, act(events, { type: "entered" }), help, empty]) {
      const lines = draw(state).split("\n");
      assert.equal(lines.length, rows - 1, `${columns}x${rows}`);
      for (const line of lines) assert.ok(columnsOf(line) <= columns, `${columns}x${rows}: ${line}`);
    }
  }
});

test("the help has all keys on a terminal of 80 by 24", () => {
  const help = draw(shown({ columns: 80, rows: 24 }, { type: "helpToggled" }));
  assert.match(help, /Ctrl-Z/);
  assert.match(help, /escape +back to the requests/);
});
