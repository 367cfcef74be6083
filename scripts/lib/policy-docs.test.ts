import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { appRoot } from "../../src/base/app-root.ts";
import { POLICY_SCHEMAS } from "../../src/policies/schemas.ts";

test("the README names every kind of policy", () => {
  const readme = readFileSync(`${appRoot}README.md`, "utf8");
  const missing = Object.keys(POLICY_SCHEMAS).filter((kind) => !readme.includes(`\`${kind}\``));
  assert.deepEqual(missing, []);
});
