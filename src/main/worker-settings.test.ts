import assert from "node:assert/strict";
import { test } from "node:test";
import { openFilesWarning } from "./worker-settings.ts";

test("a limit of open files that is too small for workers and ports is reported, with a sufficient limit", () => {
  const warning = openFilesWarning(256, 2, 3) ?? assert.fail("no warning");
  assert.match(warning, /256 open files, so each of 2 workers has room for 96 connections/);
  const needed = Number(/at least (\d+)/.exec(warning)?.[1]);
  assert.ok(openFilesWarning(needed - 1, 2, 3) !== undefined);
  assert.equal(openFilesWarning(needed, 2, 3), undefined);
  assert.ok(openFilesWarning(needed, 4, 3) !== undefined, "more workers need more");
  assert.equal(openFilesWarning(undefined, 64, 3), undefined, "unknown on this system");
});
