import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDocument } from "yaml";
import { syntaxProblems } from "./yaml-errors.ts";

/** The text from where the problem is, and what is said about it. */
const CASES: readonly (readonly [text: string, at: string, message: RegExp])[] = [
  ["a: [1, 2\nb: 3", "[1, 2", /this bracket is never closed/],
  ["a: [[1], 2\nb: 3", "[[1], 2", /this bracket is never closed/],
  ['{"a": [1, 2}', "[1, 2}", /this bracket is never closed/],
  ['{"a": 1', '{"a"', /this bracket is never closed/],
  ["a: [{b: 1}, {c: 2]", "{c: 2]", /this bracket is never closed/],
  ['{"a": 1 "b": 2}', '1 "b"', /is a comma missing after this/],
  ['a: ["x" "y"]', '"y"]', /a comma is missing before this/],
  ['{"a" 1}', "1}", /a comma is missing before this, or a colon/],
  ["a: [1,,2]", ",2]", /this does not belong here/],
  ["{'a': 'it's'}", "s'}", /this does not belong here/],
  ['a: "b', '"b', /this quote is never closed/],
  ["a: b: c", "b: c", /a second colon on the line.*needs quotes/],
  ["foo\nb: 1", "foo", /is a colon missing/],
  ["a:\n  b: 1\n c: 2", "c: 2", /not indented like/],
  ["a:\n- b\nc\n", "c\n", /neither to the list above|is a colon missing|something is missing/],
  ["a: %x", "%x", /quote the text/],
  ['a: "\\q"', "\\q", /this is not a valid escape/],
  ["a: !foo x", "!foo", /this is a tag/],
  ["a: & x", "& x", /without a usable name/],
  ["a: &x &y z", "&y z", /one anchor/],
  ['a: "x"#y', "#y", /a space in front of #/],
];

test("mistakes in the text are told in the words of those who make them, where they are", () => {
  for (const [text, at, message] of CASES) {
    const document = parseDocument(text, { prettyErrors: false, logLevel: "silent" });
    const [problem] = syntaxProblems(document, text);
    assert.match(problem?.message ?? "", message, text);
    assert.equal(text.slice(problem?.offset, (problem?.offset ?? 0) + at.length), at, text);
    assert.doesNotMatch(problem?.message ?? "", /\b(flow|block|scalar|mapping|sequence|implicit)\b/i, text);
  }
});
