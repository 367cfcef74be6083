import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceName } from "./builder.ts";

test("files of the package are named from its root, others by their URL", () => {
  assert.equal(sourceName(import.meta.url), "src/admin/pprof/builder.test.ts");
  assert.equal(sourceName("node:net"), "node:net");
  assert.equal(sourceName("file:///elsewhere/a.js"), "file:///elsewhere/a.js");
});
