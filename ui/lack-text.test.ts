import assert from "node:assert/strict";
import { test } from "node:test";
import { lackText } from "./lack-text.ts";

test("what is not known comes with what to write into a form, without options of a command", () => {
  for (const [supply, text] of [
    [{ kind: "field", name: "x-a" }, "it: write its value"],
    [{ kind: "parameter" }, "it: write them"],
    [
      { kind: "assumption", name: "jwt", examples: ['{"sub":"a"}', "valid"] },
      'it: assume jwt={"sub":"a"} or jwt=valid',
    ],
    [{ kind: "setting", field: "config.recorder.clientAddress" }, "it: set config.recorder.clientAddress"],
  ] as const)
    assert.equal(lackText({ what: "it", supply }), text);
  assert.equal(lackText({ what: "it" }), "it");
});
