import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ir, Route } from "./ir.ts";
import {
  digestAt,
  digestOf,
  type PackedText,
  type PackedTexts,
  packIr,
  parseText,
  placeAt,
  routeAt,
  TextPacker,
  unpackIr,
} from "./packed-ir.ts";

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

test("what was packed comes out unchanged, in order and by owner", () => {
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

test("a route that moves in its list keeps its text, and its new place is known", () => {
  const at = (name: string, index: number): Route => ({ ...route(name), origin: { path: ["routes", index] } });
  const [before] = packIr(irOf([at("a", 0)])).routes;
  const [after] = packIr(irOf([at("new", 0), at("a", 1)])).routes;
  assert.ok(before !== undefined && after !== undefined);
  assert.equal(digestAt(before, 0), digestAt(after, 1));
  assert.deepEqual(
    [placeAt(before, 0), placeAt(after, 1)],
    [{ origin: { path: ["routes", 0] } }, { origin: { path: ["routes", 1] } }],
  );
});

test("rules of objects keep their origin, also among routes of a file", () => {
  const object = { kind: "HTTPRoute", namespace: "default", name: "a" };
  const routes: Route[] = [
    { ...route("a"), origin: { object, path: ["spec", "rules", 3] } },
    { ...route("b"), origin: { path: ["routes", 7] } },
    route("c"),
  ];
  const packed = packIr(irOf(routes));
  assert.deepEqual(unpackIr(packed), irOf(routes));
  const [first] = packed.routes;
  assert.deepEqual(first && placeAt(first, 0), {}, "which is not a place in a file");
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
  packed.pieces[0]?.texts.fill(0x20);
  assert.throws(() => routeAt(passed, 0), SyntaxError);
});

test("routes that stay keep their place in shared memory, in whatever order they come", () => {
  const packer = new TextPacker();
  const made = (name: string): PackedText => {
    const text = Buffer.from(JSON.stringify(route(name)));
    return { text, digest: digestOf(text) };
  };
  const nameAt = (packed: PackedTexts, at: number): string => (parseText(packed, at) as Route).name;
  const names = (packed: PackedTexts): string[] =>
    Array.from({ length: packed.count }, (_, at) => {
      assert.equal(digestAt(packed, at), Buffer.from(made(nameAt(packed, at)).digest).toString("latin1"));
      return nameAt(packed, at);
    });
  const list = Array.from({ length: 100 }, (_, i) => made(`route${i}`));
  const first = packer.pack(list);
  const [second, third] = [made("second"), made("third")];
  const changed = packer.pack([second, ...list.slice(1).reverse(), third]);
  assert.deepEqual(names(changed), ["second", ...list.slice(1).map((_, i) => `route${99 - i}`), "third"]);
  assert.equal(changed.pieces[0], first.pieces[0]);
  assert.deepEqual(
    changed.pieces.map(({ offsets }) => offsets.length - 1),
    [100, 2],
  );

  assert.notEqual(changed.digest, first.digest);
  assert.equal(packer.pack(list).digest, first.digest, "the same list, wherever its parts are");

  // Waste is bounded: by half of all parts, and by the number of pieces.
  let [packed, current] = [changed, list];
  for (let i = 0; i < 500; i++) {
    current = [...current.slice(1), made(`later${i}`)];
    packed = packer.pack(current);
    assert.ok(packed.pieces.length <= 64);
    const kept = packed.pieces.reduce((sum, { offsets }) => sum + offsets.length - 1, 0);
    assert.ok(kept <= 202, `${kept} texts for 100 routes`);
  }
  assert.deepEqual(
    names(packed),
    Array.from({ length: 100 }, (_, i) => `later${400 + i}`),
  );
  // Even if only a few of many parts stay, change by change.
  const stable: PackedText[] = [];
  for (let i = 0; i < 5; i++) {
    const fresh = Array.from({ length: 100 - i }, (_, n) => made(`bulk${i}-${n}`));
    packed = packer.pack([...stable, ...fresh]);
    stable.push(...fresh.slice(0, 1));
    const kept = packed.pieces.reduce((sum, { offsets }) => sum + offsets.length - 1, 0);
    assert.ok(kept <= 202, `${kept} texts for 100 routes`);
  }
  assert.deepEqual(names(packer.pack([])), []);
  assert.deepEqual(names(packer.pack([second])), ["second"]);
});

test("routes of the configuration before keep their place in shared memory, also when another thread packs the next", () => {
  const before = packIr(irOf([route("a"), route("b")], [route("c")]));
  const ir = irOf([route("new"), route("b"), route("a"), route("b")], [route("c")]);
  const packed = packIr(ir, structuredClone(before));
  assert.deepEqual(unpackIr(packed), ir);
  assert.deepEqual(
    packed.routes.map(({ pieces }) => pieces.map(({ offsets }) => offsets.length - 1)),
    [[2, 1], [], [1]],
  );
  for (const { pieces } of before.routes) pieces[0]?.texts.fill(0x20);
  const [first] = packed.routes;
  assert.ok(first !== undefined);
  assert.deepEqual(routeAt(first, 0), route("new"));
  assert.throws(() => routeAt(first, 1), SyntaxError);
});

test("equal routes have the same digest", () => {
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
