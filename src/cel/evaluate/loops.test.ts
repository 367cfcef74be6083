import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT as cel } from "../index.ts";
import { assertFailures, assertTrue, failureOf } from "../testing/evaluate.ts";

test("conditions over the elements of lists and the keys of maps", () => {
  assertTrue([
    "[1, 2, 3].all(x, x > 0) && ![1, -2].all(x, x > 0) && [].all(x, false)",
    "[1, 2].exists(x, x == 2) && ![1].exists(x, x == 2) && ![].exists(x, true)",
    "[1, 2].exists_one(x, x == 2) && ![2, 2].exists_one(x, x == 2) && ![].existsOne(x, true)",
    '{"a": 1, "b": 2}.all(k, k in ["a", "b"]) && {"a": 1}.exists(k, k == "a")',
    "[1, 2, 3].filter(x, x % 2 == 1) == [1, 3] && {'a': 1, 'b': 2}.filter(k, k != 'a') == ['b']",
  ]);
});

test("two loop variables are index and element, or key and value", () => {
  assertTrue([
    "[5, 6].all(i, v, v == i + 5) && ['a'].exists(i, v, i == 0 && v == 'a')",
    '{"a": 1}.exists(k, v, k == "a" && v == 1) && {"a": 1, "b": 1}.existsOne(k, v, v == 1 && k == "a")',
    "[10, 20].transformList(i, v, v + i) == [10, 21]",
    "[10, 20, 30].transformMap(i, v, i != 1, v / 10) == {0: 1, 2: 3}",
    '{"a": 1}.transformMap(k, v, k + string(v)) == {"a": "a1"}',
    '{"a": "x"}.transformMapEntry(k, v, {v: k}) == {"x": "a"}',
  ]);
});

test("map, mapValues and filterKeys", () => {
  assertTrue([
    "[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
    "{'a': 1, 'b': 2}.map(k, k + '!') == ['a!', 'b!']",
    '{"a": 1, "b": 2}.mapValues(v, v * 10) == {"a": 10, "b": 20}',
    '{"a": 1, "b": 2}.filterKeys(k, k != "a") == {"b": 2}',
    "dyn({'a': 1}).mapValues(v, v + 1) == {'a': 2}",
  ]);
});

test("names of inner loops hide outer ones and end with the loop", () => {
  assertTrue([
    "[1, 2].map(x, [x * 10].map(x, x + 1)) == [[11], [21]]",
    "[1, 2].map(x, [3, 4].filter(y, y > x + 1)) == [[3, 4], [4]]",
    "[1, 2].all(x, [1].exists(x, x == 1) && x > 0)",
  ]);
});

test("an element that decides wins over elements that fail, wherever it is", () => {
  assertTrue([
    "[0, 1].exists(x, 1 / x == 1) && [1, 0].exists(x, 1 / x == 1)",
    "![0, 2].all(x, 1 / x == 1) && ![2, 0].all(x, 1 / x == 1)",
    "[dyn(1), true].exists(x, x)",
  ]);
  assertFailures({
    "[0, 2].exists(x, 1 / x == 1)": /division by zero/,
    "[0, 1].all(x, 1 / x == 1)": /division by zero/,
    "[0, 1].existsOne(x, 1 / x == 1)": /division by zero/,
    "[0, 1].filter(x, 1 / x == 1)": /division by zero/,
    "[0, 1].map(x, 1 / x)": /division by zero/,
    "[0, 1].map(x, 1 / x == 1, x)": /division by zero/,
    "{'a': 0}.mapValues(v, 1 / v)": /division by zero/,
    "{0: 0}.filterKeys(k, 1 / k == 1)": /division by zero/,
  });
});

test("what one element lacks is absent for exists, and a failure for every other loop", () => {
  const activation = { jwt: { teams: [{ name: "a", role: "dev" }, { name: "b" }] } };
  assertTrue(['jwt.teams.exists(t, t.role == "dev")'], activation);
  const absent = (text: string): boolean => failureOf(text, activation).absent;
  assert.equal(absent('jwt.teams.exists(t, t.role == "ops")'), true);
  for (const loop of [
    'all(t, t.role == "dev")',
    'existsOne(t, t.role == "dev")',
    'filter(t, t.role == "dev")',
    "map(t, t.role)",
    'map(t, t.role == "dev", t.name)',
    "transformMap(i, t, t.role)",
  ])
    assert.equal(absent(`jwt.teams.${loop}`), false, loop);
});

test("bodies whose result the loop cannot use", () => {
  const notBool = /the condition of the loop is neither true nor false/;
  assertFailures({
    "[1].all(x, dyn(x))": notBool,
    "[1].exists(x, dyn(x))": notBool,
    "[1].existsOne(x, dyn(x))": notBool,
    "[1].filter(x, dyn(x))": notBool,
    "[1].map(x, dyn(x), x)": notBool,
    "{1: 1}.filterKeys(x, dyn(x))": notBool,
    "[1, 2].transformMapEntry(i, v, {'same': v})": /duplicate key/,
    "[1].transformMapEntry(i, v, {1: v, 2: v})": /a map with one entry/,
    "[1].transformMapEntry(i, v, dyn(v))": /a map with one entry/,
  });
});

test("values that cannot be iterated over: known types are rejected at compile time, others fail, null is absent", () => {
  assert.throws(() => cel.compileExpression("[1].mapValues(v, v)"), /mapValues needs a map, not list<int>/);
  assert.throws(() => cel.compileExpression("'a'.all(c, true)"), /all needs a list or map, not string/);
  assertFailures({
    "dyn('a').all(c, true)": /^no such overload: all of string$/,
    "dyn([1]).filterKeys(k, true)": /^no such overload: filterKeys of list$/,
  });
  assert.equal(failureOf("dyn(null).exists(x, true)").absent, true);
  assert.equal(failureOf("dyn('a').exists(x, true)").absent, false);
});

test("iterations count against the budget even when they do nothing", () => {
  const activation = { jwt: { list: Array.from({ length: 1000 }, () => "a") } };
  assertTrue(["jwt.list.all(a, true)"], activation);
  assertFailures({ "jwt.list.all(a, jwt.list.all(b, true))": /too much work/ }, activation);
});
