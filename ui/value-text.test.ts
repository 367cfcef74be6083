import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { valueText } from "./value-text.ts";

test("each field and item has its lines", () => {
  const value = { method: "GET", headers: { host: "a:80", empty: "", n: "12" }, list: [1, { a: true, b: [] }, [null]] };
  assert.equal(
    valueText(value),
    `method: GET
headers:
  host: a:80
  empty: ""
  n: "12"
list:
  - 1
  - a: true
    b: []
  - - null`,
  );
});

test("values are what YAML reads back, so that no text looks like another value", () => {
  for (const value of [
    "true",
    "null",
    "-1.5",
    " a",
    "a\nb",
    "a: b",
    '"',
    "#",
    "größe",
    "- a",
    { "x-y": "*" },
    {},
    [],
    null,
    "1e3x",
  ])
    assert.deepEqual(parse(valueText({ value })), { value });
});
