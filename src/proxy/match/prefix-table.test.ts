import assert from "node:assert/strict";
import { test } from "node:test";
import { PrefixTable } from "./prefix-table.ts";

test("each pair of owner and prefix has its own value, also after the table has grown many times", () => {
  const table = new PrefixTable<string>();
  const owners = Array.from({ length: 100 }, (_, owner) => owner);
  const prefixes = Array.from({ length: 50 }, (_, index) => `/service-${index}`);
  for (const owner of owners) for (const prefix of prefixes) table.set(owner, prefix, `${owner}${prefix}`);
  for (const owner of owners)
    for (const prefix of prefixes) assert.equal(table.get(owner, prefix), `${owner}${prefix}`);
  assert.equal(table.get(100, "/service-0"), undefined);
  assert.equal(table.get(0, "/service-50"), undefined);
});

test("an owner does not see the values of another, and a later value replaces the earlier one", () => {
  const table = new PrefixTable<string>();
  table.set(0, "/a", "first");
  table.set(1, "/b", "other");
  table.set(0, "/a", "second");
  assert.equal(table.get(0, "/a"), "second");
  assert.equal(table.get(0, "/b"), undefined);
  assert.equal(table.get(1, "/a"), undefined);
});
