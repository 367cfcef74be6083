import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { expandEnv } from "./env.ts";

const expand = (text: string, env: Record<string, string> = {}): string => expandEnv(text, env).text;

test("variables, defaults and dollar signs", () => {
  const env = { HOST: "api.example", EMPTY: "" };
  assert.equal(expand("$HOST:80", env), "api.example:80");
  assert.equal(expand("${HOST}s", env), "api.examples");
  assert.equal(expand("${NONE:-a b}/${EMPTY:-x}/${NONE:-}", env), "a b//");
  assert.equal(expand("$$HOST $${HOST} $ $5 a$", env), "$HOST ${HOST} $ $5 a$");
  assert.equal(expand("${NONE:-$HOST}", env), "$HOST");
});

test("comment lines are left alone", () => {
  const text = "a: 1 # $A\n  # $B\n#${C}\n";
  const { text: expanded, problems } = expandEnv(text, { A: "x" });
  assert.equal(expanded, "a: 1 # x\n  # $B\n#${C}\n");
  assert.deepEqual(problems, []);
});

test("a variable that is not set, and an unterminated reference, are reported with their position", () => {
  const { problems } = expandEnv("a: $ONE\nb: ${TWO}\nc: ${x y}", {});
  assert.deepEqual(
    problems.map(({ offset }) => offset),
    [3, 11, 21],
  );
  assert.match(problems[0]?.message ?? "", /^environment variable ONE is not set; set it, write \$\{ONE:-default\}/);
});

test("inherited properties are not variables", () => {
  assert.equal(expandEnv("$CONFIG", Object.create({ CONFIG: "x" }) as Record<string, string>).problems.length, 1);
});

test("every offset maps back to the original text", () => {
  const part = fc.oneof(
    fc.string().map((text) => text.replace(/[$#]/g, "_")),
    fc.constantFrom("$A", "${LONG}", "${NONE:-a default}", "$$", "\n"),
  );
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const original = parts.join("|");
      const { text, toOriginal } = expandEnv(original, { A: "", LONG: "a value that is longer than its name" });
      let before = 0;
      for (let offset = 0; offset <= text.length; offset++) {
        const at = toOriginal(offset);
        assert.ok(at >= before && at <= original.length);
        // Outside replacements the character is the same one.
        if (original[at] !== "$" && offset < text.length) assert.equal(original[at], text[offset]);
        before = at;
      }
    }),
  );
});
