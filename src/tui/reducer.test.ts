import assert from "node:assert/strict";
import { test } from "node:test";
import { EVENTS } from "../report/fixtures/trace.ts";
import { rowOf } from "../report/rows.ts";
import { loaded } from "./fixtures/trace.ts";
import { listLine } from "./layout.ts";
import {
  detail,
  initialState,
  layout,
  listColumns,
  type Move,
  reduce,
  type State,
  statusText,
  wrappedDetail,
} from "./reducer.ts";

const SIZE = { columns: 80, rows: 24 };
/** The snapshots of the fixture that equal the one before. */
const UNCHANGED = ["5 gateway policies", "17 backend response ready", "18 final response"];
const moved = (state: State, ...moves: Move[]) =>
  moves.reduce((before, move) => reduce(before, { type: "moved", move }), state);

test("the selection follows new events until the reader leaves the last row", () => {
  let state = initialState("t", SIZE);
  for (const event of EVENTS.slice(0, 5)) state = reduce(state, { type: "events", events: [event] });
  assert.equal(state.selected, 4);
  state = moved(state, "up");
  state = reduce(state, { type: "events", events: [EVENTS[5] ?? {}] });
  assert.equal(state.selected, 3);
  state = moved(state, "end");
  state = reduce(state, { type: "events", events: [EVENTS[6] ?? {}] });
  assert.equal(state.selected, 6);
});

test("the selected row is always visible, at every size", () => {
  for (const size of [SIZE, { columns: 140, rows: 40 }, { columns: 30, rows: 8 }, { columns: 1, rows: 1 }]) {
    let state = reduce(loaded(80, 24), { type: "resized", size });
    for (const move of ["home", "down", "pageDown", "pageDown", "up", "end", "pageUp", "home"] as const) {
      state = moved(state, move);
      const visible = Math.max(1, layout(state).events.lines - 1);
      assert.ok(
        state.selected >= state.eventsTop && state.selected < state.eventsTop + visible,
        `${move} at ${size.columns}`,
      );
    }
  }
});

test("the list is no wider and no taller than its content, and leaves the details two fifths", () => {
  const state = loaded(300, 60);
  const { events, detail } = layout(state);
  const longest = Math.max(...state.rows.map((row) => listLine(row, listColumns(state), false).length));
  assert.equal(events.textWidth, longest);
  assert.equal(events.width + detail.width, 300);
  assert.equal(layout(loaded(120, 60)).events.width, 72);
  const short = { ...loaded(80, 60), listed: state.rows.slice(0, 3) };
  assert.equal(layout(short).events.lines, 4, "the header and three rows");
});

test("a bar shows when a step began and how long it took, against the whole request", () => {
  const row = (eventStart: number, eventEnd: number) => rowOf({ eventStart, eventEnd, message: {} }, undefined);
  const columns = { number: 1, time: 5, bar: 10, total: 1000 };
  const bar = (began: number, end: number) => listLine(row(began, end), columns, false).slice(11, 21);
  assert.equal(bar(0, 1000), "██████████");
  assert.equal(bar(0, 500), "█████     ");
  assert.equal(bar(250, 500), "  ▐██     ");
  assert.equal(bar(300, 350), "   ▌      ");
  assert.equal(bar(1000, 1000), "         ▐", "one that takes no time, at the end");
  assert.equal(bar(0, 0), "▌         ");
  assert.equal(listLine(row(0, 0), { ...columns, total: 0 }, false).slice(11, 21), "▌         ");
});

test("moves stop at both ends", () => {
  const state = moved(loaded(80, 24), "down", "end", "down");
  assert.equal(state.selected, EVENTS.length - 1);
  assert.equal(moved(state, "home", "up").selected, 0);
});

test("tab moves the keys to the details, which scroll no further than their end", () => {
  let state = reduce(moved(loaded(80, 24), "home", "down"), { type: "paneSwitched" });
  state = moved(state, "down");
  assert.equal(state.selected, 1);
  assert.equal(state.detailTop, 1);
  state = moved(state, "end");
  const last = wrappedDetail(state).length - layout(state).detail.lines;
  assert.equal(state.detailTop, last);
  assert.equal(moved(state, "pageDown").detailTop, last);
  // A taller terminal shows more, so there is less to scroll.
  state = reduce(state, { type: "resized", size: { columns: 80, rows: 100 } });
  assert.equal(state.detailTop, 0);
});

test("another row or another mode starts at the top of the details", () => {
  const scrolled = moved(reduce(moved(loaded(80, 24), "home", "down"), { type: "paneSwitched" }), "down", "down");
  assert.equal(scrolled.detailTop, 2);
  assert.equal(reduce(scrolled, { type: "modeChosen", mode: "snapshot" }).detailTop, 0);
  assert.equal(moved(reduce(scrolled, { type: "paneSwitched" }), "down").detailTop, 0);
});

test("the status shows the progress of the trace", () => {
  let state = initialState("t", SIZE);
  assert.equal(statusText(state), "waiting for trace data");
  state = reduce(state, { type: "progress", text: "request sent, waiting for trace to complete" });
  assert.equal(statusText(state), "request sent, waiting for trace to complete");
  state = reduce(state, { type: "events", events: [EVENTS[0] ?? {}] });
  assert.equal(statusText(state), "1 event · request sent, waiting for trace to complete");
  state = reduce(state, { type: "ended" });
  assert.equal(statusText(state), "1 event · stream complete, press q to exit");
});

test("the end of the request selects the event that decided, unless the reader has moved away", () => {
  const state = loaded(80, 24);
  assert.equal(state.rows[state.selected]?.label, "Backend Result");
  const before = EVENTS.slice(0, -1).reduce<State>(
    (now, event) => reduce(now, { type: "events", events: [event] }),
    initialState("t", SIZE),
  );
  const moved = reduce(before, { type: "moved", move: "home" });
  assert.equal(reduce(moved, { type: "events", events: [EVENTS.at(-1) ?? {}] }).selected, 0);
});

test("snapshots that change nothing can be hidden; the rows keep their numbers, the decisions and the selection", () => {
  const all = loaded(80, 24);
  const brief = reduce(all, { type: "briefToggled" });
  const labels = (state: State) => state.listed.map(({ number, summary }) => `${number} ${summary}`);
  assert.deepEqual(
    labels(all).filter((label) => !labels(brief).includes(label)),
    UNCHANGED,
  );
  assert.equal(statusText(brief), `${UNCHANGED.length} hidden: snapshots that change nothing`);
  assert.equal(brief.listed[brief.selected]?.label, "Backend Result");
  assert.deepEqual(reduce(brief, { type: "briefToggled" }).listed, all.rows);

  const onHidden = moved(all, "home", "down", "down", "down", "down");
  assert.equal(onHidden.listed[onHidden.selected]?.summary, "gateway policies");
  const before = reduce(onHidden, { type: "briefToggled" });
  assert.equal(before.listed[before.selected]?.number, 4, "the row before");
});

test("events that arrive while unchanged snapshots are hidden are listed only if they change something", () => {
  let state = reduce(initialState("t", SIZE), { type: "briefToggled" });
  for (const event of EVENTS) state = reduce(state, { type: "events", events: [event] });
  assert.equal(state.rows.length - state.listed.length, UNCHANGED.length);
  assert.equal(state.listed[state.selected]?.label, "Backend Result", "the end selects the event that decided");
});

test("a stream that broke ends in a red row that says why", () => {
  const state = reduce(loaded(80, 24), { type: "problem", text: "connection reset" });
  const row = state.rows.at(-1);
  assert.deepEqual([row?.label, row?.summary, row?.severity], ["Message", "connection reset", "error"]);
});

test("the details say when no event or snapshot has arrived yet", () => {
  const state = initialState("t", SIZE);
  assert.deepEqual(detail(state).lines, [{ text: "No event available yet.", note: true }]);
  const first = reduce(state, { type: "events", events: [EVENTS[0] ?? {}] });
  const snapshot = detail(reduce(first, { type: "modeChosen", mode: "snapshot" }));
  assert.deepEqual(snapshot.lines, [{ text: "No snapshot available yet.", note: true }]);
});
