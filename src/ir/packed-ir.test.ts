import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ir, Route } from "./ir.ts";
import { digestAt, packIr, routeAt, unpackIr } from "./packed-ir.ts";

function route(name: string): Route {
  return { key: name, name, namespace: "default", hostnames: ["ä.test"], matches: [], policies: {}, backends: [] };
}

function irOf(routes: readonly Route[], groups: readonly Route[] = []): Ir {
  return {
    binds: [],
    routeGroups: [
      { name: "first", routes },
      { name: "empty", routes: [] },
      { name: "last", routes: groups },
    ],
    backends: [],
    services: [],
    workloads: [],
    targeted: [],
  };
}

test("what is packed comes out as it was, in its order and of its owner", () => {
  const ir = irOf([route("b"), route("a")], [route("c")]);
  const packed = packIr(ir);
  assert.deepEqual(unpackIr(packed), ir);
  assert.deepEqual(
    packed.routes.map(({ owner, count }) => [owner, count]),
    [
      ["group/first", 2],
      ["group/empty", 0],
      ["group/last", 1],
    ],
  );
  assert.ok(packed.frame.routeGroups.every(({ routes }) => routes.length === 0));
});

test("metadata may have numbers that JSON lacks", () => {
  const location = { header: { name: "x-key", prefix: "" } };
  const limited = (value: unknown): Route => ({
    ...route("a"),
    policies: { apiKey: { mode: "strict", keys: [{ hash: "h", metadata: { value } }], location } },
  });
  const numbers = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
  const ir = irOf([limited({ numbers, nothing: null }), limited(null), limited(Number.NaN)]);
  const packed = packIr(ir);
  assert.deepEqual(unpackIr(packed), ir);
  const [first] = packed.routes;
  assert.ok(first !== undefined);
  assert.notEqual(digestAt(first, 1), digestAt(first, 2));
});

test("routes stay in shared memory when they are passed to another thread", () => {
  const [packed] = packIr(irOf([route("a")])).routes;
  assert.ok(packed !== undefined);
  const passed = structuredClone(packed);
  assert.deepEqual(routeAt(passed, 0), route("a"));
  packed.texts.fill(0x20);
  assert.throws(() => routeAt(passed, 0), SyntaxError);
});

test("routes have one digest if they are equal", () => {
  const [packed] = packIr(irOf([route("a"), route("b"), route("a")])).routes;
  assert.ok(packed !== undefined);
  assert.equal(digestAt(packed, 0), digestAt(packed, 2));
  assert.notEqual(digestAt(packed, 0), digestAt(packed, 1));
});

test("whether a backend is the admin API is known without the routes", () => {
  const ir = irOf([route("a")]);
  const backend = { key: "k", weight: 1, target: { type: "internal", path: "/" }, policies: {} } as const;
  assert.equal(packIr(ir).internal, false);
  assert.equal(packIr(irOf([{ ...route("a"), backends: [backend] }])).internal, true);
});
