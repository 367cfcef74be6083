import assert from "node:assert/strict";
import { test } from "node:test";
import { Budget, endBudget, startBudget } from "./budget.ts";
import { Failure } from "./failure.ts";
import { readJson } from "./json.ts";

/** The value, and the steps that reading it has cost. */
function read(text: string): { readonly value: unknown; readonly steps: number } {
  const budget = new Budget(10_000_000);
  const before = budget.steps;
  startBudget(budget);
  const value = readJson(text);
  endBudget();
  return { value, steps: before - budget.steps };
}

function failureOf(text: string): string {
  const { value } = read(text);
  assert.ok(value instanceof Failure, `${text.slice(0, 80)} was read`);
  return value.what;
}

test("values are those of JSON.parse", () => {
  const texts = [
    "null",
    " true ",
    "false\n",
    "0",
    "-0",
    "-12.5e-3",
    "1E400",
    "1e+5",
    "0.1",
    "123456789012345",
    '""',
    '"short"',
    '"a text of more than twelve characters"',
    `"${"é😀".repeat(50)}"`,
    '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00"',
    `"${'\\\\\\"'.repeat(40)}"`,
    `["${"x".repeat(30)}\\\\", "${"y".repeat(30)}"]`,
    '"\\ud800"',
    "[]",
    "{}",
    "\t[ 1 ,\r\n2 , [ ] , { } ]",
    '{"a":1,"b":{"a":[{"a":null}]},"":""}',
    '{"__proto__":{"x":1},"constructor":2,"toString":3,"hasOwnProperty":4}',
    '{"10":1,"9":2,"4294967295":3,"a long name of more than twelve characters":4}',
    JSON.stringify(
      Array.from({ length: 300 }, (_, id) => ({ id, name: `user ${id}`, tags: ["a", "b"], score: id / 7 })),
    ),
  ];
  for (const text of texts) assert.deepEqual(read(text).value, JSON.parse(text), text);
});

test("texts that JSON.parse rejects are rejected here too", () => {
  const texts = [
    "",
    " ",
    "nul",
    "nulll",
    "tru",
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "0x10",
    "NaN",
    "Infinity",
    "'a'",
    '"a',
    '"',
    '"\\',
    '"\\x"',
    '"\\u12g4"',
    '"a\nb"',
    `"${"a".repeat(40)}\n"`,
    `"${"a".repeat(40)}`,
    `"${"a".repeat(40)}\\"`,
    "[",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "{",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,}',
    "{a:1}",
    '{"a" 1}',
    '{"a":1 "b":2}',
    "[1}",
    '{"a":1]',
    "1 2",
    "[] []",
    "\ufeff1",
    "\u00a01",
    "\v1",
  ];
  for (const text of texts) {
    assert.throws(() => JSON.parse(text), SyntaxError, text);
    assert.equal(failureOf(text), "the text is not JSON", text);
  }
});

test("integers that a double cannot hold are exact as far as an int reaches", () => {
  assert.deepEqual(read("[9007199254740993, -9223372036854775808, 9223372036854775808, 1234567890123456.5]").value, [
    9007199254740993n,
    -9223372036854775808n,
    2 ** 63,
    1234567890123456.5,
  ]);
});

test("a duplicate name in an object is an error, however it is written", () => {
  assert.equal(failureOf('{"role":"user","role":"admin"}'), 'the JSON has the name "role" twice in one object');
  assert.match(failureOf('[{"a":{"x":1,"\\u0078":2}}]'), /the name "x" twice/);
  assert.match(failureOf('{"__proto__":1,"__proto__":2}'), /the name "__proto__" twice/);
  assert.match(failureOf('{"1":1,"1":2}'), /the name "1" twice/);
  assert.deepEqual(read('[{"a":1},{"a":2,"b":{"a":3}}]').value, [{ a: 1 }, { a: 2, b: { a: 3 } }]);
});

test("depth is limited, so that a short text cannot exhaust the stack", () => {
  const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  assert.ok(Array.isArray(read(nested(128)).value));
  assert.equal(failureOf(nested(129)), "the JSON has more than 128 levels");
  assert.equal(failureOf('{"a":'.repeat(1_000_000)), "the JSON has more than 128 levels");
});

test("every value costs steps as it is created, whatever it consists of", () => {
  const many = (element: string, count = 1000): string => `[${Array.from({ length: count }, () => element).join()}]`;
  for (const element of ["{}", "[]", "1", "null", '""', "1234567890123456", '"0123456789abcdef"', '{"a":1}', "1.5e3"])
    assert.ok(read(many(element)).steps >= 32_000, element);
  const names = Array.from({ length: 1000 }, (_, index) => `"n${index}":1`).join();
  assert.ok(read(`{${names}}`).steps >= 160_000);
  assert.ok(read(`[${" ".repeat(10_000)}]`).steps >= 10_000);
  assert.ok(read(`"${"a".repeat(10_000)}"`).steps >= 2500);
  assert.ok(read(`"${"\\n".repeat(5000)}"`).steps >= 80_000);
  assert.ok(read("1".repeat(1000)).steps >= 1000);
});

test("reading stops as soon as the budget is used up", () => {
  for (const text of [`{"l":[${"{},".repeat(600_000)}{}]}`, `[${"1234567890123456,".repeat(100_000)}1]`]) {
    startBudget(new Budget(1000));
    assert.throws(() => readJson(text), /too much work/);
    endBudget();
  }
});

test("the characters of a long text or number are charged before the rest is read", (context) => {
  const run = (text: string, microseconds: number): unknown => {
    startBudget(new Budget(microseconds));
    try {
      return readJson(text);
    } finally {
      endBudget();
    }
  };
  const searches = context.mock.method(String.prototype, "indexOf");
  assert.throws(() => run(`"${'\\"'.repeat(50_000)}"`, 10), /too much work/);
  assert.ok(searches.mock.callCount() < 10_000, `${searches.mock.callCount()} searches`);
  const codes = context.mock.method(String.prototype, "charCodeAt");
  assert.throws(() => run(`${" ".repeat(100_000)}1`, 10), /too much work/);
  assert.ok(codes.mock.callCount() < 50_000, `${codes.mock.callCount()} characters`);
});

test("a number has at most 1024 characters", () => {
  for (const text of ["1".repeat(1025), `1.${"0".repeat(1024)}`, `1e${"0".repeat(2000)}1`, `-${"1".repeat(2_000_000)}`])
    assert.match(failureOf(`[${text}]`), /a number of more than 1024 characters/);
  assert.equal((read(`[${"1".repeat(300)}]`).value as number[])[0], Number("1".repeat(300)));
});
