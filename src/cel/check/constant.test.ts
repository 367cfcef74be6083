import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { STANDARD_ENVIRONMENT as cel } from "../index.ts";
import { REQUEST } from "../testing/evaluate.ts";

const METHODS = ["GET", "PUT", "POST"];

const { condition } = fc.letrec<{ condition: string }>((tie) => {
  const part = tie("condition");
  const method = fc
    .tuple(fc.constantFrom("==", "!="), fc.constantFrom(...METHODS), fc.boolean())
    .map(([sign, value, turned]) => {
      const sides = ["request.method", `"${value}"`];
      return (turned ? sides.reverse() : sides).join(` ${sign} `);
    });
  return {
    condition: fc.oneof(
      { maxDepth: 4 },
      method,
      fc.constantFrom("true", "false", "1 < 2", '"a" in ["b"]', "random() < 2.0", "request.path == request.method"),
      fc.tuple(part, fc.constantFrom("&&", "||"), part).map(([a, sign, b]) => `(${a} ${sign} ${b})`),
      part.map((a) => `!(${a})`),
      fc.tuple(part, part, part).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
    ),
  };
});

test("a condition that is called constant has that result for every request", () => {
  let constant = 0;
  fc.assert(
    fc.property(condition, (text) => {
      const result = cel.constantOf(text, "request");
      if (result === undefined) return;
      constant++;
      for (const method of METHODS) {
        const request = { ...REQUEST, method };
        const met = cel.compileCondition(text, "request").matches({ request }, (error) => assert.fail(error.message));
        assert.equal(met, result, `${text} with ${method}`);
      }
    }),
    { numRuns: 2000 },
  );
  assert.ok(constant > 200, `only ${constant} are constant`);
});

test("what depends on the request, on chance, or is written on purpose is not constant", () => {
  for (const text of [
    'request.method == "GET"',
    "random() < 0.5",
    "true",
    "random() == 1.0 && random() == 2.0",
    "request.path == request.method",
  ])
    assert.equal(cel.constantOf(text, "request"), undefined, text);
});
