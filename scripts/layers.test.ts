import assert from "node:assert/strict";
import { test } from "node:test";
import { cycles, layersOf, needless } from "./layers.ts";
import { importsOf } from "./lib/source.ts";

test("importsOf finds every form of import with its line, and none in comments", () => {
  const source = [
    'import { a } from "./a.ts";',
    'import type { B } from "./b.ts";',
    'import "./c.ts";',
    "import {",
    "  d,",
    '} from "./d.ts";',
    'export { e } from "./e.ts";',
    'export * from "./f.ts";',
    '// import { no } from "./comment.ts";',
    "/*",
    'import { no } from "./block.ts"; */',
    'const g = await import("./g.ts");',
    'const url = "http://host/x"; import { h } from "./h.ts";',
  ].join("\n");
  assert.deepEqual(
    importsOf(source).map(({ specifier, kind, line }) => [specifier, kind, line]),
    [
      ["./a.ts", "static", 1],
      ["./b.ts", "type", 2],
      ["./c.ts", "static", 3],
      ["./d.ts", "static", 6],
      ["./e.ts", "static", 7],
      ["./f.ts", "static", 8],
      ["./g.ts", "lazy", 12],
      ["./h.ts", "static", 13],
    ],
  );
});

test("cycles finds the shortest way round, a module that imports itself, and nothing in a tree", () => {
  const graph = new Map([
    ["a", ["b", "c"]],
    ["b", ["c"]],
    ["c", ["a", "d"]],
    ["d", []],
    ["self", ["self"]],
  ]);
  assert.deepEqual(
    cycles(graph).map((cycle) => cycle.join()),
    ["a,c", "b,c,a", "self"],
  );
  assert.deepEqual(
    cycles(
      new Map([
        ["a", ["b"]],
        ["b", []],
      ]),
    ),
    [],
  );
});

test("needless shows by which way a thread loads a module that it must not", () => {
  const graph = new Map([
    ["src/entry.ts", ["src/a.ts", "node:fs"]],
    ["src/a.ts", ["src/b.ts", "src/entry.ts"]],
    ["src/b.ts", ["zod", "zodiac"]],
    ["src/other.ts", ["yaml"]],
  ]);
  assert.deepEqual(needless(graph, "src/entry.ts", /^(zod|yaml)(\/|$)/), [
    { module: "zod", chain: ["src/entry.ts", "src/a.ts", "src/b.ts"] },
  ]);
});

test("a circle of folders fails though no module is part of one, and the error shows the imports that make it", () => {
  const tree = new Map([
    ["src/http/server/a.ts", 'import type { B } from "../h2/b.ts";'],
    ["src/http/h2/b.ts", ""],
    ["src/http/h2/c.ts", '\nconst d = await import("../server/d.ts");'],
    ["src/http/server/d.ts", 'import "./a.ts";'],
  ]);
  assert.deepEqual(layersOf(tree, []), {
    problems: [
      [
        "circle of folders: src/http/server → src/http/h2 → src/http/server",
        "    src/http/server/a.ts:1 imports src/http/h2/b.ts",
        "    src/http/h2/c.ts:2 imports src/http/server/d.ts",
      ].join("\n"),
    ],
    summary: "4 modules in 2 folders, 3 imports",
  });
  tree.delete("src/http/h2/c.ts");
  assert.deepEqual(layersOf(tree, []).problems, []);
});

test("a cycle that closes through a lazy import fails too", () => {
  const tree = new Map([
    ["src/kube/a.ts", 'const { b } = await import("./b.ts");'],
    ["src/kube/b.ts", 'import type { A } from "./a.ts";'],
  ]);
  assert.deepEqual(layersOf(tree, []).problems, ["cycle: src/kube/a.ts → src/kube/b.ts → src/kube/a.ts"]);
});

test("the web view sees answers and reports, not what makes them, and no room sees the web view", () => {
  const tree = new Map([
    [
      "ui/frame.tsx",
      'import { render } from "preact";\nimport type { A } from "../src/admin/a.ts";\nimport "../src/main/b.ts";',
    ],
    ["src/admin/a.ts", ""],
    ["src/main/b.ts", 'import { signal } from "@preact/signals";\nimport "../../ui/place.ts";'],
  ]);
  assert.deepEqual(layersOf(tree, []).problems, [
    "ui/frame.tsx:3: ../src/main/b.ts: the web view may not see main",
    "src/main/b.ts:1: @preact/signals belongs to ui only",
    "src/main/b.ts:2: ../../ui/place.ts: browsers run the web view, the gateway does not",
  ]);
});
