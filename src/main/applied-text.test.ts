import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { InputReader } from "../config/parse/inputs.ts";
import { AppliedText } from "./applied-text.ts";

const NONE = new Set<string>();
let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tracegate-applied-"));
  path = join(folder, "gateway.yaml");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** The file with this text is in effect. */
function applied(text: string): AppliedText {
  writeFileSync(path, text);
  const reader = new InputReader();
  reader.readText(path);
  return new AppliedText([path], reader.inputs.files);
}

const numbers = (count: number): string[] => Array.from({ length: count }, (_, i) => `line: ${i + 1}`);

test("changes far apart are hunks with lines around them and their numbers", async () => {
  const lines = numbers(40);
  const text = applied(lines.join("\n"));
  assert.deepEqual(await text.difference(NONE), { hunks: [] });
  writeFileSync(path, lines.toSpliced(10, 1, "line: ten", "more: 1").toSpliced(35, 1).join("\n"));
  const difference = await text.difference(NONE);
  assert.ok("hunks" in difference);
  const shown = difference.hunks.map(({ before, after, lines }) => [
    before,
    after,
    lines.map(({ sign, text }) => `${sign}${text}`).join("|"),
  ]);
  assert.deepEqual(shown, [
    [8, 8, " line: 8| line: 9| line: 10|-line: 11|+line: ten|+more: 1| line: 12| line: 13| line: 14"],
    [32, 33, " line: 32| line: 33| line: 34|-line: 35| line: 36| line: 37| line: 38"],
  ]);
});

test("a secret that has changed is a change, and is not shown", async () => {
  const text = applied("a: 1\napiKey: first\n");
  writeFileSync(path, "a: 1\napiKey: second\n");
  assert.deepEqual(await text.difference(NONE), {
    hunks: [
      {
        file: path,
        before: 1,
        after: 1,
        lines: [
          { sign: " ", text: "a: 1" },
          { sign: "-", text: "apiKey: <redacted>" },
          { sign: "+", text: "apiKey: <redacted>" },
          { sign: " ", text: "" },
        ],
      },
    ],
  });
});

test("what cannot be compared is said: another text by now, no file, too many lines", async () => {
  const text = applied(numbers(5000).join("\n"));
  writeFileSync(path, numbers(10_000).toReversed().join("\n"));
  assert.match(JSON.stringify(await text.difference(NONE)), /more than 2000 lines/);
  rmSync(path);
  assert.match(JSON.stringify(await text.difference(NONE)), /cannot read the file: it does not exist/);
  writeFileSync(path, "a: 1");
  const changed = new AppliedText([path], new Map([[path, "another digest"]]));
  assert.match(JSON.stringify(await changed.difference(NONE)), /was not kept/);
});
