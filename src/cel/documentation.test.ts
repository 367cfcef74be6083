import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { VARIABLES } from "./variables/variables.ts";

const PAGE = readFileSync(new URL("../../docs/expressions.md", import.meta.url), "utf8");

/** What the page writes as code, without arguments. */
const NAMED = new Set([...PAGE.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code.replace(/\(.*/, "")));

test("the page about expressions names every variable with its fields", () => {
  for (const [name, { type }] of VARIABLES.response) {
    assert.ok(NAMED.has(name), name);
    for (const [field, { fields }] of type.fields ?? [])
      for (const path of fields === undefined ? [field] : [...fields.keys()].map((inner) => `${field}.${inner}`))
        assert.ok(NAMED.has(path), `${name}.${path}`);
  }
});
