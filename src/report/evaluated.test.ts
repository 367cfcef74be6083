import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluatedLines } from "./evaluated.ts";

test("parts stand below the part that has them, in the order of the text", () => {
  const expression = 'a.startsWith("/x") &&\n  b == 1';
  const parts = [
    { from: 0, to: 18, value: true, type: "bool" },
    { from: 0, to: 1, value: "/x", type: "string" },
    { from: 24, to: 30, error: "not known: b" },
    { from: 24, to: 25, error: "not known: b" },
  ];
  const shown = evaluatedLines(expression, { type: "bool", needs: [{ what: "b" }], parts });
  assert.deepEqual(
    shown.map(({ depth, text, value }) => `${"  ".repeat(depth)}${text} ${value}`),
    [
      'a.startsWith("/x") && b == 1 not known',
      '  a.startsWith("/x") true',
      '    a "/x"',
      "  b == 1 not known: b",
      "    b not known: b",
    ],
  );
});

test("an expression that does not compile has no lines; one that fails says why", () => {
  const problem = { what: "no such key: x", message: "" };
  assert.deepEqual(evaluatedLines("a", { problem, parts: [] }), []);
  assert.deepEqual(evaluatedLines("a", { type: "dyn", problem, parts: [] }), [
    { depth: 0, text: "a", value: "no such key: x" },
  ]);
  const [large] = evaluatedLines("request.body", { type: "bytes", parts: [] });
  assert.equal(large?.value, "too large to be shown");
  assert.deepEqual(evaluatedLines("null", { type: "null_type", value: null, parts: [] }), [
    { depth: 0, text: "null", value: "null", type: "null_type" },
  ]);
});
