import assert from "node:assert/strict";
import { test } from "node:test";
import { act, following } from "./fixtures/follow.ts";
import { loaded } from "./fixtures/trace.ts";
import { followKeys, keysToActions, type Named } from "./keys.ts";
import { reduce, type State, statusText, wrappedDetail } from "./reducer.ts";

const NONE: Named = {
  ...{ upArrow: false, downArrow: false, pageUp: false, pageDown: false, home: false, end: false, tab: false },
  ...{ escape: false, ctrl: false, return: false, backspace: false, delete: false },
};

/** The state after keys: text as it is read from the terminal, or a named key. */
function press(state: State, ...keys: (string | Partial<Named>)[]): State {
  return keys.reduce<State>((before, pressed) => {
    const [input, key] = typeof pressed === "string" ? [pressed, NONE] : ["", { ...NONE, ...pressed }];
    const actions = keysToActions(input, key, before);
    return actions.reduce<State>((now, action) => (typeof action === "string" ? now : reduce(now, action)), before);
  }, state);
}

const number = (state: State) => state.selected + 1;

test("j, k, g and G move like the arrows, home and end", () => {
  const last = loaded(80, 24);
  assert.equal(number(press(last, "g")), 1);
  assert.equal(number(press(last, "gjjjk")), 3);
  assert.equal(number(press(last, "g", "G")), 21);
});

test("] and [ go to the next and the previous error or warning, around the end", () => {
  const problems = [15, 19, 21];
  let state = press(loaded(80, 24), "g");
  for (const expected of [...problems, 15]) {
    state = press(state, "]");
    assert.equal(number(state), expected);
  }
  assert.equal(number(press(state, "[")), 21);
  const healthy = loaded(80, 24);
  const none = { ...healthy, listed: healthy.rows.slice(0, 5), selected: 2 };
  assert.equal(statusText(press(none, "]")), "no error or warning in this trace");
});

test("/ searches rows by what is in their events, n and N go on", () => {
  const state = press(loaded(80, 24), "g", "/", "X-TENANT");
  assert.equal(statusText(state), "/X-TENANT█");
  const found = press(state, { return: true });
  assert.equal(number(found), 7);
  assert.equal(number(press(found, "n")), 10);
  assert.equal(number(press(found, "nN")), 7);
  assert.equal(number(press(loaded(80, 24), "/tenant\r")), 7, "typed in one go");
  assert.equal(statusText(press(found, "/nowhere\r")), "no match for nowhere");
});

test("while a search is typed, letters are text; backspace and escape work", () => {
  const typing = press(loaded(80, 24), "/", "qq?]", { backspace: true });
  assert.equal(statusText(typing), "/qq?█");
  const cancelled = press(typing, { escape: true });
  assert.equal(cancelled.typing, false);
  assert.deepEqual(keysToActions("", { ...NONE, escape: true }, cancelled), ["quit"]);
  assert.deepEqual(keysToActions("c", { ...NONE, ctrl: true }, typing), ["interrupt"]);
});

test("in the details a search goes from line to line and marks it", () => {
  const state = press(loaded(80, 24), "gj", { tab: true }, "/shop.example\r");
  const line = (now: State) => wrappedDetail(now)[now.foundLine ?? -1]?.text.trim();
  assert.equal(line(state), "uri: http://shop.example.com/api/cart?debug=1");
  assert.equal(line(press(state, "n")), "host: shop.example.com");
  assert.equal(press(state, "j").foundLine, undefined);
});

test("? covers the panes with the keys, any key uncovers them", () => {
  const help = press(loaded(80, 24), "?");
  assert.equal(help.help, true);
  assert.equal(press(help, "q").help, false);
  assert.deepEqual(keysToActions("q", NONE, help), [{ type: "helpToggled" }]);
});

test("Ctrl-C and Ctrl-Z are commands", () => {
  const state = loaded(80, 24);
  assert.deepEqual(keysToActions("c", { ...NONE, ctrl: true }, state), ["interrupt"]);
  assert.deepEqual(keysToActions("z", { ...NONE, ctrl: true }, state), ["suspend"]);
});

test("in the view of many requests enter opens, also typed fast after other keys; escape goes back and then quits", () => {
  const state = following({ columns: 80, rows: 24 }, { path: "/a" }, { path: "/b" });
  const names = (input: string, key: Partial<Named>, now = state) =>
    followKeys(input, { ...NONE, ...key }, now).map((action) => (typeof action === "string" ? action : action.type));
  assert.deepEqual(names("\r", { return: true }), ["entered"]);
  assert.deepEqual(names("k\r", {}), ["moved", "entered"]);
  assert.deepEqual(names("/cart\r", {}), ["searchOpened", "searchChanged", "searchClosed"]);
  assert.deepEqual(names("", { escape: true }), ["quit"]);
  assert.deepEqual(names("", { escape: true }, act(state, { type: "entered" })), ["left"]);
  const typing = act(state, { type: "searchOpened" });
  assert.deepEqual(names("q", {}, typing), ["searchChanged"]);
  assert.deepEqual(names("", { escape: true }, typing), ["searchClosed"]);
});
