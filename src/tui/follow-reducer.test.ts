import assert from "node:assert/strict";
import { test } from "node:test";
import { act, arrival, eventsOf, following } from "./fixtures/follow.ts";
import {
  type FollowAction,
  type FollowState,
  followLayoutOf,
  followStatus,
  listedRequests,
  reduceFollow,
  selectedIndex,
  settled,
  topIndex,
} from "./follow-reducer.ts";
import { MAX_REQUESTS } from "./requests.ts";

const SIZE = { columns: 80, rows: 24 };
const paths = (state: FollowState) => listedRequests(state).map(({ number }) => number);
const moved = (...moves: ("up" | "down" | "home" | "end" | "pageUp" | "pageDown")[]): FollowAction[] =>
  moves.map((move) => ({ type: "moved", move }));
const many = (count: number) => following(SIZE, ...Array.from({ length: count }, (_, i) => ({ path: `/${i + 1}` })));
const selectedRow = ({ trace }: FollowState) => trace.listed[trace.selected]?.label;

test("the newest request is selected until the reader moves away, and again after G", () => {
  let state = many(3);
  assert.deepEqual([state.selected, state.following], [3, true]);
  state = act(state, ...moved("up"), ...arrival(4, { path: "/4" }));
  assert.deepEqual([state.selected, state.following], [2, false]);
  assert.equal(followStatus(state), "4 requests · standing still, 2 newer; G follows");
  state = act(state, ...moved("end"), ...arrival(5, { path: "/5" }));
  assert.deepEqual([state.selected, followStatus(state)], [5, "5 requests · following the newest"]);
});

test("each request opens on the event that decided", () => {
  const state = following(SIZE, { path: "/no", status: 403, denied: true }, { path: "/yes" });
  assert.equal(selectedRow(state), "Route");
  assert.equal(selectedRow(act(state, ...moved("up"))), "Authz");
  const running = eventsOf(3, { path: "/later", status: 403, denied: true });
  const arrived = running.map(
    (event): FollowAction => ({ type: "followed", event: { number: 3, pod: "", event, length: 100 } }),
  );
  const before = act(state, ...arrived.slice(0, 3));
  assert.equal(selectedRow(before), "Route", "the latest event so far");
  assert.equal(selectedRow(act(before, ...arrived.slice(3))), "Authz", "its end selects what decided");
});

test("enter and tab go to the events and the details, escape comes back; meanwhile the list stands still", () => {
  let state = act(many(3), { type: "entered" });
  assert.deepEqual([state.onList, state.trace.pane, state.following], [false, "events", false]);
  state = act(state, { type: "entered" }, ...arrival(4, { path: "/4" }));
  assert.deepEqual([state.trace.pane, state.selected], ["detail", 3]);
  state = act(state, { type: "left" });
  assert.deepEqual([state.onList, state.trace.pane], [false, "events"]);
  assert.equal(act(state, { type: "left" }).onList, true);
  const around = act(state, { type: "paneSwitched" }, { type: "paneSwitched" });
  assert.deepEqual([around.onList, around.trace.pane], [true, "events"]);
});

test("a filter narrows the list as it is typed; escape shows all again", () => {
  let state = following(SIZE, { path: "/a" }, { path: "/no", status: 403, denied: true }, { path: "/b" });
  state = act(state, { type: "searchOpened" }, { type: "searchChanged", text: "403" });
  assert.deepEqual([paths(state), state.selected, followStatus(state)], [[2], 2, "/403█"]);
  state = act(state, { type: "searchClosed", find: true }, ...arrival(4, { path: "/c", status: 403 }));
  assert.deepEqual([paths(state), state.selected], [[2, 4], 4], "new requests pass the filter too");
  assert.equal(followStatus(state), '2 of 4 requests with "403" · following the newest');
  assert.deepEqual(paths(act(state, { type: "left" })), [1, 2, 3, 4]);
  const cancelled = act(state, { type: "searchOpened" }, { type: "searchChanged", text: "zzz" });
  assert.deepEqual([paths(cancelled), selectedRow(cancelled)], [[], undefined], "nothing is listed, nothing is shown");
  assert.deepEqual(paths(act(cancelled, { type: "searchClosed", find: false })), [1, 2, 3, 4]);
});

test("] and [ go to the requests with errors and warnings, around the end", () => {
  const failed = { path: "/no", status: 403, denied: true };
  const state = following(SIZE, { path: "/a" }, failed, { path: "/b" }, { ...failed, status: 500 }, { path: "/c" });
  const next = (now: FollowState, forward: boolean) => act(now, { type: "foundNext", what: "problem", forward });
  assert.deepEqual([next(state, true).selected, next(next(state, true), true).selected], [2, 4]);
  assert.equal(next(state, false).selected, 4);
  const none = next(many(2), true);
  assert.equal(followStatus(none), "no listed request has an error or a warning");
});

test("the selected line is visible at every size, after every move", () => {
  for (const size of [SIZE, { columns: 120, rows: 40 }, { columns: 200, rows: 50 }, { columns: 30, rows: 8 }]) {
    let state = act(many(60), { type: "resized", size });
    for (const action of moved("home", "down", "pageDown", "pageDown", "up", "end", "pageUp", "home")) {
      state = act(state, action);
      const visible = Math.max(1, followLayoutOf(state).requests.lines - 1);
      const line = selectedIndex(state) - topIndex(state);
      assert.ok(line >= 0 && line < visible, `${JSON.stringify(action)} at ${size.columns}: line ${line}`);
    }
  }
});

test("what the reader looks at does not move while requests arrive and fall out", () => {
  let state = act(many(60), ...moved("pageUp"));
  const before = [state.selected, state.top];
  for (let number = 61; number <= MAX_REQUESTS + 20; number++)
    state = arrival(number, { path: "/x" }).reduce(reduceFollow, state);
  state = settled(state);
  assert.deepEqual([state.selected, state.top], before);
  assert.match(followStatus(state), /^1000 requests · 20 not kept · standing still, \d+ newer; G follows$/);
  state = act(state, ...moved("end"), ...arrival(MAX_REQUESTS + 21, { path: "/x" }));
  assert.match(followStatus(state), /^1000 requests · 1 older gone · 20 not kept · following/);
});

test("the mode of the details stays from request to request, and what is hidden stays hidden", () => {
  const state = act(many(3), { type: "modeChosen", mode: "tree" }, { type: "briefToggled" }, ...moved("up"));
  assert.deepEqual([state.trace.mode, state.trace.brief], ["tree", true]);
  assert.ok(state.trace.listed.length < state.trace.rows.length);
  assert.equal(state.trace.title, "#2");
});

test("what is missing and how the stream ended is said until the next key, and after it", () => {
  let state = act(many(2), { type: "missing", text: "web-1: 7 events are missing" });
  assert.equal(followStatus(state), "web-1: 7 events are missing");
  state = act(state, ...moved("up"), { type: "streamEnded", why: "stream complete" });
  assert.equal(followStatus(state), "2 requests · stream complete");
});

test("a stream that lives for long shows its newest messages; a message that the reader looks at stays selected", () => {
  const message = (number: number): FollowAction => {
    const event = { eventEnd: number, severity: "info", message: { type: "streamMessage", direction: "sent", number } };
    return { type: "followed", event: { number: 1, pod: "", event, length: 100 } };
  };
  const messages = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => message(from + i));
  const open = arrival(1, { path: "/chat" }).slice(0, 3);
  const shown = ({ trace }: FollowState) => {
    const selected = trace.listed[trace.selected]?.message.number;
    return [selected, trace.listed[0]?.label, trace.listed.at(-1)?.message.number];
  };
  let state = act(following(SIZE), ...open, ...messages(1, 900));
  assert.deepEqual(shown(state), [900, "Request Start", 900]);
  state = act(state, ...messages(901, 1300));
  assert.deepEqual(shown(state), [1300, "Request Start", 1300], "it follows the newest");
  state = act(state, { type: "entered" }, ...moved("up"), ...messages(1301, 1600));
  assert.deepEqual(shown(state), [1299, "Request Start", 1600], "the selected one stays");
  assert.match(state.trace.title, /#1 · \d+ events not kept/);
});
