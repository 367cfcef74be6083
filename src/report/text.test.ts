import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/helpers/property.ts";
import { diffLines } from "./diff.ts";
import { clip, fit, harmless, wrap, wrapHanging } from "./text.ts";

test("wrap keeps every character and no piece is wider than asked", () => {
  assert.deepEqual(wrap("abcdef", 4), ["abcd", "ef"]);
  assert.deepEqual(wrap("", 4), [""]);
  assert.deepEqual(wrap("日本語", 4), ["日本", "語"]);
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 2, max: 20 }), (line, width) => {
      assert.equal(wrap(line, width).join(""), line);
    }),
  );
});

test("fit pads or cuts to the exact width", () => {
  assert.equal(fit("ab", 4), "ab  ");
  assert.equal(fit("abcd", 4), "abcd");
  assert.equal(fit("abcde", 4), "abc…");
  assert.equal(fit("日本語", 5), "日本…");
  assert.equal(fit("日本語", 4), "日… ");
  assert.equal(fit("abc", 0), "");
});

test("the rest of a wrapped line is indented, by half the width at most", () => {
  assert.deepEqual(wrapHanging("  uri: http://a/b c", 10, 4), ["  uri:", "    http:/", "    /a/b c"]);
  assert.deepEqual(wrapHanging("abcdefgh", 4, 10), ["abcd", "  ef", "  gh"]);
  assert.deepEqual(wrapHanging("path: /a is not under", 12, 2), ["path: /a is", "  not under"]);
  assert.deepEqual(wrapHanging("", 10, 4), [""]);
  assert.deepEqual(wrapHanging("short", 10, 4), ["short"]);
});

test("wrapping takes time in proportion to the text", () => {
  const line = "x".repeat(2_000_000);
  assert.equal(wrapHanging(line, 40, 0).length, 50_000);
  assert.equal(wrapHanging("語".repeat(50), 40, 2).join("").replaceAll(" ", "").length, 50);
});

test("clip ends long text with three dots", () => {
  assert.equal(clip("abcdef", 6), "abcdef");
  assert.equal(clip("abcdefg", 6), "abc...");
});

test("harmless shows control characters instead of sending them", () => {
  assert.equal(harmless("a\u001b[2J\tb\r\nc\u007f\u202e"), "a␛[2J  b\nc\ufffd\ufffd");
});

test("a diff holds both texts, in order", () => {
  const line = fc.constantFrom("a", "b", "c", "d");
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.array(line, { maxLength: 12 }), (before, after) => {
      const lines = diffLines(before, after);
      const side = (sign: "-" | "+") => lines.filter((one) => one.sign !== sign).map((one) => one.text);
      assert.deepEqual(side("+"), before);
      assert.deepEqual(side("-"), after);
    }),
  );
});
