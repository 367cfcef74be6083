import assert from "node:assert/strict";
import { test } from "node:test";
import { REDACTED } from "../../base/redaction.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import { applyHeaderEdits, compileHeaderEdits, type HeaderEdit, pickHeaders, redactModifier } from "./header-edits.ts";
import { PolicyError } from "./policy-error.ts";

function edited(headers: HeaderList, ...edits: HeaderEdit[]): HeaderList {
  applyHeaderEdits(edits, headers);
  return headers;
}

test("edits are compiled in the order add, set, remove, with names in lower case and values as bytes of UTF-8", () => {
  assert.deepEqual(compileHeaderEdits({ remove: ["X-C"], set: { "X-B": "é" }, add: { "X-A": "1" } }), [
    { action: "add", name: "x-a", value: "1" },
    { action: "set", name: "x-b", value: "\u00c3\u00a9" },
    { action: "remove", name: "x-c", value: "" },
  ]);
});

test("all mistakes of a modifier are reported together, each with its path and key", () => {
  const config = {
    add: { "transfer-encoding": "chunked" },
    set: { "x-a": "a\r\nx-b: c", ":path": "/" },
    remove: ["x-fine", "connection"],
  };
  assert.throws(
    () => compileHeaderEdits(config),
    (error) => {
      assert.ok(error instanceof PolicyError);
      assert.deepEqual(
        error.problems.map(({ path, key }) => [...path, key]),
        [
          ["add", "transfer-encoding"],
          ["set", "x-a"],
          ["set", ":path"],
          ["remove", 1, undefined],
        ],
      );
      return true;
    },
  );
});

test("each action does what Envoy's append actions do, with and without an existing field", () => {
  const edit = (action: HeaderEdit["action"]): HeaderEdit => ({ action, name: "x", value: latin1("new") });
  const existing = (): HeaderList => ["x", "1", "y", "2", "x", "3"];
  assert.deepEqual(edited(existing(), edit("add")), ["x", "1", "y", "2", "x", "3", "x", "new"]);
  assert.deepEqual(edited(existing(), edit("addAbsent")), existing());
  assert.deepEqual(edited([], edit("addAbsent")), ["x", "new"]);
  assert.deepEqual(edited([], edit("setPresent")), []);
  assert.deepEqual(edited(["y", "2"], { ...edit("remove"), value: "" }), ["y", "2"]);
  assert.deepEqual(edited(existing(), { ...edit("remove"), value: "" }), ["y", "2"]);
  for (const action of ["set", "setPresent"] as const) {
    const headers = edited(existing(), edit(action));
    assert.deepEqual(pickHeaders(headers, new Set(["x"]), new Set()), { x: "new" });
  }
});

test("snapshots and dumps hide the values of secret headers, whatever their case", () => {
  const hidden = new Set(["x-key"]);
  assert.deepEqual(pickHeaders(["x-key", "s3cret", "x-a", "1", "x-b", "2"], new Set(["x-key", "x-a"]), hidden), {
    "x-key": REDACTED,
    "x-a": "1",
  });
  assert.deepEqual(redactModifier({ set: { "X-Key": "s3cret", "X-A": "1" }, remove: ["x-key"] }, hidden), {
    set: { "X-Key": REDACTED, "X-A": "1" },
    remove: ["x-key"],
  });
});
