import assert from "node:assert/strict";
import { test } from "node:test";
import { readableValue } from "./header-text.ts";

const latin1 = (text: string): string => Buffer.from(text).toString("latin1");

test("a value in UTF-8 is read as that", () => {
  for (const text of ["Köln", "שלום", "\ufeffx", "日本 🎉", "plain"]) assert.equal(readableValue(latin1(text)), text);
});

test("other bytes, and text that has been decoded, stay as they are", () => {
  for (const text of ["K\u00f6ln", "\u00c3", "שלום", "Ω\u00c3\u00b6", ""]) assert.equal(readableValue(text), text);
});
