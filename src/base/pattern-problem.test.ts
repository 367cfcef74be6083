import assert from "node:assert/strict";
import { test } from "node:test";
import { RE2JS } from "re2js";
import { patternProblem } from "./pattern-problem.ts";

const PROBLEMS: Readonly<Record<string, string>> = {
  "/(?!admin).*":
    "RE2 has no look-around, `(?!`; leave it out, and match what it excludes by a route or condition of its own",
  "(?<!a)b":
    "RE2 has no look-around, `(?<!`; leave it out, and match what it excludes by a route or condition of its own",
  "a(?=b)":
    "RE2 has no look-around, `(?=`; leave it out, and match what it looks for by a route or condition of its own",
  "(a|b)\\1": "RE2 cannot refer back to a group, `\\1`; write out the texts that may be repeated",
  "(?>a)": "RE2 never backtracks, so it has no `(?>`; write (?:",
  "a++b": "RE2 never backtracks, so it has no `++`; write +",
  "/a(": "missing closing ): `/a(`; write it in RE2 syntax",
  "a**": "invalid nested repetition operator: `**`; write it in RE2 syntax",
  "a\\": "trailing backslash at end of expression; write it in RE2 syntax",
};

for (const [pattern, problem] of Object.entries(PROBLEMS))
  test(`${pattern}: ${problem}`, () => {
    let thrown: unknown;
    try {
      RE2JS.compile(pattern);
    } catch (error) {
      thrown = error;
    }
    assert.equal(patternProblem(thrown), problem);
  });
