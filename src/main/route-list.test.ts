import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../config/load.ts";
import type { Route } from "../ir/ir.ts";
import { type PackedIr, packIr } from "../ir/packed-ir.ts";
import { CounterMemory, Metrics } from "../telemetry/metrics.ts";
import { RouteLists } from "./route-list.ts";

const counted = new CounterMemory();
const metrics = new Metrics(0, (notice) => counted.add(notice));
const source = { generation: 1, counted, locate: () => undefined, hidden: new Set<string>() };
const ALL = { page: 1, limit: 1000 };

/** One listener with the routes that `change` makes of `/one` and `/two`, and a group. */
function configuration(change: (routes: readonly Route[]) => readonly Route[] = (routes) => routes): PackedIr {
  const backends = [{ host: "127.0.0.1:1" }];
  const routes = ["one", "two"].map((name) => ({ name, matches: [{ path: { exact: `/${name}` } }], backends }));
  const text = JSON.stringify({
    binds: [{ port: 80, listeners: [{ name: "web", routes }] }],
    routeGroups: [{ name: "inner", routes: [{ name: "one", backends }] }],
  });
  const loaded = loadConfig({ kind: "text", text, name: "test" }, {});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const { ir } = loaded;
  const changed = ir.binds.map((bind) => ({
    ...bind,
    listeners: bind.listeners.map((listener) => ({ ...listener, routes: change(listener.routes) })),
  }));
  return packIr({ ...ir, binds: changed });
}

function request(route: string, place: { readonly bind: string; readonly gateway: string; readonly listener: string }) {
  const others = { backend: "b", protocol: "http", method: "GET", status: "200", reason: "Upstream" };
  metrics.requests.count(metrics.requestSeries({ ...others, ...place, route, route_rule: "unknown" }), 0.001, 0, 0);
}

test("requests count for the route of their listener or of a group, and rows with the same labels say that they share theirs", async () => {
  const web = { bind: "bind/80", gateway: "default/default", listener: "web" };
  request("default/one", web);
  request("default/one", web);
  request("default/one", { bind: "unknown", gateway: "unknown", listener: "unknown" });
  request("default/one", { ...web, listener: "other" });
  const list = await new RouteLists().of(configuration());
  const rows = (shown: typeof list) =>
    shown.page(ALL, source).routes.map(({ name, group, requests, countedTogether }) => {
      return [name, group, requests, countedTogether];
    });
  assert.deepEqual(rows(list), [
    ["default/one", undefined, 2, undefined],
    ["default/two", undefined, 0, undefined],
    ["default/one", "inner", 1, undefined],
  ]);
  // As the rules of an HTTPRoute that have no name.
  const rules = configuration((routes) => routes.map((route) => ({ ...route, name: "one" })));
  assert.deepEqual(rows(await new RouteLists().of(rules)), [
    ["default/one", undefined, 2, 2],
    ["default/one", undefined, 2, 2],
    ["default/one", "inner", 1, undefined],
  ]);
});

test("a configuration's list is made once, and dropped after a minute without questions", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const lists = new RouteLists();
  const [first, second] = [configuration(), configuration()];
  const list = lists.of(first);
  t.mock.timers.tick(59_000);
  assert.equal(lists.of(first), list);
  t.mock.timers.tick(59_000);
  assert.equal(lists.of(first), list, "a minute since the last question");
  t.mock.timers.tick(60_000);
  const again = lists.of(first);
  assert.notEqual(again, list);
  assert.notEqual(lists.of(second), again);
  await Promise.all([list, again]);
});

test("other work goes on while a long list is read", async () => {
  const many = configuration((routes) =>
    Array.from({ length: 1000 }, (_, i) => routes.map((route) => ({ ...route, key: `${route.key}-${i}` }))).flat(),
  );
  let turns = 0;
  const turn = (): void => {
    turns++;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  const list = await new RouteLists().of(many);
  clearImmediate(next);
  assert.equal(list.page({ page: 1, limit: 1 }, source).total, 2001);
  assert.ok(turns > 5, `${turns} turns`);
});
