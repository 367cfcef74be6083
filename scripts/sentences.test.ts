import assert from "node:assert/strict";
import { test } from "node:test";
import { sentencesIn } from "./sentences.ts";

const problemsOf = (...lines: readonly string[]): string[] =>
  sentencesIn(new Map([["src/net/a.ts", lines.join("\n")]]), new Map()).problems.map(
    (each) => each.split("`")[1] ?? "",
  );

test("finds every way to decide by a message, and none that asks no question about its words", () => {
  assert.deepEqual(
    problemsOf(
      'if (error.message === "closed") return;',
      'if (error?.message.includes("closed")) return;',
      "if (other !== failure.message) return;",
      "if (/closed/.test(error.message)) return;",
      "const code = CODE.exec(messageOf(error));",
      'if (String(error).startsWith("Error")) return;',
      "switch (error.message) {",
      "const { message } = error; return message.match(/closed/);",
    ),
    [
      "message.includes(",
      "String(error).startsWith(",
      "message.match(",
      "message ===",
      "!== failure.message",
      ".test(error.message)",
      ".exec(messageOf(error))",
      "switch (error.message)",
    ],
  );
  assert.deepEqual(
    problemsOf(
      '// error.message === "closed"',
      'if (error.message === "") return error.message !== undefined;',
      'if (typeof error.message === "string") return;',
      'if (event.message.type === "policy" || "policy" === message.type) return;',
      'lines.push(...message.split("\\n"));',
      'if (message.length > 10 || code === "closed") return `no: ${error.message}`;',
    ),
    [],
  );
});

test("an edge may decide, and is no edge when it does not", () => {
  const edge = new Map([["src/net/a.ts", "the library has no codes"]]);
  const deciding = new Map([["src/net/a.ts", 'error.message.includes("x")']]);
  assert.deepEqual(sentencesIn(deciding, edge).problems, []);
  assert.match(
    sentencesIn(new Map([["src/net/a.ts", "error.code"]]), edge).problems.join(),
    /^src\/net\/a\.ts: .* remove it/,
  );
});
