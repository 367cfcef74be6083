import assert from "node:assert/strict";
import { test } from "node:test";
import { sameData } from "./same-data.ts";

test("data is the same in any order of fields, and differs in any value", () => {
  assert.ok(sameData({ a: [1, { b: null }], c: "x" }, { c: "x", a: [1, { b: null }] }));
  assert.ok(sameData({ a: 1, b: undefined }, { a: 1 }));
  for (const [a, b] of [
    [{ a: 1 }, { a: 2 }],
    [{ a: 1 }, { a: 1, b: 1 }],
    [[1], [1, 2]],
    [[1, 2], [1]],
    [{ 0: 1 }, [1]],
    [[1], { 0: 1 }],
    [{ a: null }, { a: {} }],
    [null, {}],
    ["1", 1],
  ])
    assert.ok(!sameData(a, b), `${JSON.stringify(a)} ${JSON.stringify(b)}`);
});
