import assert from "node:assert/strict";
import { test } from "node:test";
import { clipboardSequence } from "./terminal.ts";

test("the clipboard gets the text as OSC 52, unless terminals would drop it", () => {
  assert.equal(clipboardSequence("é"), "\u001b]52;c;w6k=\u0007");
  assert.equal(clipboardSequence("x".repeat(60_000)), undefined);
});
