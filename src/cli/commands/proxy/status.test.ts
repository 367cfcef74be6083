import assert from "node:assert/strict";
import { test } from "node:test";
import { statusLines } from "./status.ts";

test("each problem of a rejected configuration is listed once", () => {
  const problem = { severity: "error", file: "a.yaml", line: 6, column: 1, path: "foo", message: "unknown field" };
  const message = "a.yaml:6:1: error: foo: unknown field; expected one of binds\n  foo: 1\n  ^\n";
  const lastError = { at: "2026-01-01T00:00:00Z", message, diagnostics: [problem] };
  const text = statusLines({ synchronized: false, lastError });
  assert.equal(text.split("unknown field").length - 1, 1, text);
  const other = { ...problem, line: 7, path: "bar" };
  assert.match(
    statusLines({ lastError: { ...lastError, diagnostics: [problem, other] } }),
    / {2}a\.yaml:7:1: error: bar: unknown field\n$/,
  );
});
