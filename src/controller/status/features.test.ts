import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { appRoot } from "../../base/app-root.ts";
import { SUPPORTED_FEATURES } from "./features.ts";

const FILE = `${appRoot}src/controller/translate/fixtures/gateway-api-features.txt`;

// The conformance suite ignores a name that it does not know: its tests would silently never run.
test("every claimed feature exists in the Gateway API, and all other features are for meshes", () => {
  const known = readFileSync(FILE, "utf8").split("\n").slice(1, -1);
  const claimed = new Set(SUPPORTED_FEATURES.map(({ name }) => name));
  assert.deepEqual(
    [...claimed].filter((name) => !known.includes(name)),
    [],
  );
  assert.deepEqual(
    known.filter((name) => !claimed.has(name) && !name.startsWith("Mesh")),
    [],
  );
});
