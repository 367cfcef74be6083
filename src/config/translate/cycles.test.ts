import assert from "node:assert/strict";
import { test } from "node:test";
import type { RouteBackend, RouteGroup } from "../../ir/ir.ts";
import { findCycles } from "./cycles.ts";

function backend(name: string, weight = 1): RouteBackend {
  return { key: "", weight, target: { type: "routeGroup", name }, policies: {} };
}

function group(name: string, ...backends: readonly RouteBackend[]): RouteGroup {
  const route = { key: "", name: "", namespace: "", hostnames: [], matches: [], policies: {}, backends };
  return { name, routes: [route] };
}

test("groups that delegate back are reported with the names along the cycle", () => {
  const groups = [
    group("entry", backend("a")),
    group("a", backend("b"), backend("end")),
    group("b", backend("a")),
    group("end"),
    group("self", backend("self")),
  ];
  assert.deepEqual(findCycles(groups), [
    ["a", "b", "a"],
    ["self", "self"],
  ]);
});

test("two ways to one group are not a cycle, nor is a delegation with weight 0, nor one to a missing group", () => {
  const groups = [
    group("a", backend("b"), backend("c")),
    group("b", backend("d")),
    group("c", backend("d"), backend("nowhere")),
    group("d", backend("a", 0)),
  ];
  assert.deepEqual(findCycles(groups), []);
});

test("a chain longer than the call stack", () => {
  const length = 50_000;
  const chain = Array.from({ length }, (_, i) => group(`g${i}`, backend(`g${(i + 1) % length}`)));
  assert.deepEqual(
    findCycles(chain).map((names) => [names.length, names[0], names.at(-1)]),
    [[length + 1, "g0", "g0"]],
  );
});

test("many cycles are reported once for each group that closes one", () => {
  const names = Array.from({ length: 40 }, (_, i) => `g${i}`);
  const every = names.map((name) => backend(name));
  assert.equal(findCycles(names.map((name) => group(name, ...every))).length, names.length);
});
