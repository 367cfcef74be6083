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

test("the turns of a loop stand below it, each with its parts, and the number of those that are left out", () => {
  const expression = "xs.all(x, x > 1) && xs.size() > 0";
  const turn = (x: number) => ({
    variables: [{ name: "x", value: x, type: "int" }],
    parts: [{ from: 10, to: 15, value: x > 1, type: "bool" }],
  });
  const parts = [
    { from: 0, to: 16, value: false, type: "bool", turns: [turn(2), turn(1)], moreTurns: 3 },
    { from: 0, to: 2, value: [2, 1], type: "list" },
    { from: 20, to: 33, value: true, type: "bool" },
  ];
  const shown = evaluatedLines(expression, { type: "bool", value: false, parts });
  assert.deepEqual(
    shown.map(({ depth, text, value }) => `${"  ".repeat(depth)}${text} ${value}`),
    [
      "xs.all(x, x > 1) && xs.size() > 0 false",
      "  xs.all(x, x > 1) false",
      "    xs [2,1]",
      "    x 2",
      "      x > 1 true",
      "    x 1",
      "      x > 1 false",
      "    … 3 more",
      "  xs.size() > 0 true",
    ],
  );
  const whole = evaluatedLines("xs.all(x, x > 1)", {
    type: "bool",
    value: false,
    parts: [],
    turns: [turn(1)],
    moreTurns: 2,
  });
  assert.deepEqual(whole.map(({ depth, text }) => [depth, text]).slice(1), [
    [1, "x"],
    [2, "x > 1"],
    [1, "…"],
  ]);
  const large = evaluatedLines("xs.all(x, true)", {
    type: "bool",
    value: true,
    parts: [],
    turns: [{ variables: [{ name: "x" }], parts: [] }],
  });
  assert.equal(large[1]?.value, "too large to be shown");
});
