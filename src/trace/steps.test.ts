import assert from "node:assert/strict";
import { test } from "node:test";
import { wholeOf } from "./steps.ts";

test("a policy that several places make up was written in none of them as a whole", () => {
  const gateway = { path: ["binds", 0, "policies", "ipAccess"] };
  const route = { path: ["routes", 0, "policies", "ipAccess"] };
  assert.equal(wholeOf("ipAccess", [gateway]), gateway);
  assert.equal(wholeOf("ipAccess", [gateway, route]), undefined);
  const rules = (of: { readonly path: (string | number)[] }) => [0, 1].map((i) => ({ path: [...of.path, "rules", i] }));
  assert.deepEqual(wholeOf("authorization", rules(route)), route);
  assert.equal(wholeOf("authorization", [...rules(gateway), ...rules(route)]), undefined);
});
