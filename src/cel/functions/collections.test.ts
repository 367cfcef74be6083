import assert from "node:assert/strict";
import { test } from "node:test";
import { assertFailures, assertTrue, evaluate, failureOf } from "../testing/evaluate.ts";
import { Budget } from "../values/budget.ts";

test("lists and maps contain values that are equal, numbers whatever their type", () => {
  assertTrue([
    '["a", "b"].contains("a") && {"a": 1}.contains("a") && !{"a": 1}.contains("b")',
    "[1, 2].contains(dyn(2.0)) && [1, 2].contains(dyn(2u)) && !dyn([1, 2]).contains('2')",
    "[[1], [2]].contains([2]) && ![[1]].contains([1, 2])",
  ]);
});

test("slices are half open, and may not reach outside the list", () => {
  assertTrue(["[1, 2, 3].slice(1, 3) == [2, 3]", "[1].slice(1, 1) == []"]);
  assertFailures({
    "[1, 2].slice(0, 3)": /^cannot slice 2 elements from 0 to 3$/,
    "[1, 2].slice(-1, 1)": /^cannot slice 2 elements from -1 to 1$/,
    "[1, 2].slice(2, 1)": /^cannot slice 2 elements from 2 to 1$/,
  });
});

test("lists are flattened as deep as wanted, by default one level", () => {
  assertTrue([
    "[1, [2, [3]]].flatten() == [1, 2, [3]]",
    "[1, [2, [3]]].flatten(2) == [1, 2, 3]",
    "[[1], [[2]]].flatten(0) == [[1], [[2]]]",
  ]);
  assertFailures({ "[1].flatten(-1)": /negative/ });
});

test("sort orders elements of one type and leaves the original as it is", () => {
  assertTrue([
    "[3, 1, 2].sort() == [1, 2, 3]",
    "['b', 'a', 'B'].sort() == ['B', 'a', 'b']",
    "[duration('2s'), duration('1s')].sort() == [duration('1s'), duration('2s')]",
    "[].sort() == []",
    "cel.bind(list, [2, 1], list.sort() == [1, 2] && list == [2, 1])",
  ]);
  assertFailures({ "[dyn(1), 'a'].sort()": /one type that has an order/, "[[1], [2]].sort()": /one type/ });
});

test("distinct keeps the first of equal elements; reverse, first and last", () => {
  assertTrue([
    "[2, 1, 2, 1].distinct() == [2, 1] && [dyn(1), 1.0, 1u].distinct().size() == 1",
    "[1, 2, 3].reverse() == [3, 2, 1]",
    "[1, 2].first().value() == 1 && [1, 2].last().value() == 2",
    "![].first().hasValue() && ![].last().hasValue() && [].first().orValue(7) == 7",
    "[dyn(null)].first().hasValue()",
  ]);
});

test("lists.range counts from 0, to a limit", () => {
  assertTrue(["lists.range(3) == [0, 1, 2]", "lists.range(0) == []"]);
  assertTrue(["lists.range(1000000).size() == 1000000"], { budget: new Budget(100_000) });
  assertFailures({ "lists.range(-1)": /from 0 to 1000000/, "lists.range(1000001)": /from 0 to 1000000/ });
});

test("sets ignore order and repetition", () => {
  assertTrue([
    "sets.contains([1, 2, 3], [3, 1, 1]) && !sets.contains([1], [1, 2]) && sets.contains([1], [])",
    "sets.equivalent([1, 2], [2, 1, 1]) && !sets.equivalent([1, 2], [1]) && !sets.equivalent([1], [1, 2])",
    "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2]) && !sets.intersects([], [])",
  ]);
});

test("of two merged maps the second wins", () => {
  assertTrue([
    '{"a": 1}.merge({"a": 2, "b": 3}) == {"a": 2, "b": 3}',
    'merge({"a": 1}, {}) == {"a": 1}',
    // Keys that are equal as numbers are one key.
    '{dyn(1): "int"}.merge({dyn(1u): "uint"}) == {1: "uint"}',
  ]);
});

test("nested data becomes a map of dotted names, one level or all", () => {
  assertTrue([
    'flattenRecursive({"a": {"b": [5]}}) == {"a.b.0": 5}',
    'flatten({"a": {"b": {"c": 1}}, "d": 2}) == {"a.b": {"c": 1}, "d": 2}',
    'flatten(["x", "y"]) == {"0": "x", "1": "y"}',
    'flattenRecursive([{"a": 1}, [2]]) == {"0.a": 1, "1.0": 2}',
  ]);
});

test("optional values: present ones, none, and those that are not zero", () => {
  assertTrue([
    "optional.of(1).hasValue() && optional.of(null).hasValue() && !optional.none().hasValue()",
    "optional.ofNonZeroValue('a').value() == 'a' && optional.ofNonZeroValue([0]).hasValue()",
    "['', b''].all(v, !optional.ofNonZeroValue(v).hasValue())",
    "[0, 0u, 0.0, false, null, [], {}].all(v, !optional.ofNonZeroValue(v).hasValue())",
    "optional.unwrap([optional.of(1), optional.none(), optional.of(2)]) == [1, 2]",
    "[optional.none(), optional.of('a')].unwrapOpt() == ['a']",
    "optional.none().or(optional.of(2)).value() == 2 && optional.of(1).or(optional.of(2)).value() == 1",
  ]);
  const failure = failureOf("optional.none().value()");
  assert.match(failure.what, /has no value/);
  assert.equal(failure.absent, true);
});

test("work on long lists counts against the budget of the request", () => {
  const activation = { jwt: { groups: Array.from({ length: 10_000 }, (_, index) => `g${index}`) } };
  assert.deepEqual(evaluate("jwt.groups.slice(0, 2).distinct()", activation), ["g0", "g1"]);
  const tooMuch = /too much work/;
  assertFailures(
    { "jwt.groups.distinct()": tooMuch, "sets.contains(jwt.groups, jwt.groups.reverse())": tooMuch },
    activation,
  );
});
