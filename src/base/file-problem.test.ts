import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileProblem } from "./file-problem.ts";

const folder = mkdtempSync(join(tmpdir(), "tracegate-file-problem-"));
after(() => rmSync(folder, { recursive: true }));

function problemOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return fileProblem(error);
  }
  return "none";
}

test("says what is wrong with a file in words, without the code and the call", () => {
  const at = (name: string): string => join(folder, name);
  writeFileSync(at("file"), "");
  symlinkSync(at("loop"), at("loop"));
  assert.equal(
    problemOf(() => readFileSync(at("gone"))),
    "it does not exist",
  );
  assert.equal(
    problemOf(() => readFileSync(at("file/below"))),
    "it does not exist, because a part of its path is not a folder",
  );
  assert.equal(
    problemOf(() => readFileSync(folder)),
    "it is a folder",
  );
  assert.equal(
    problemOf(() => writeFileSync(at("file"), "", { flag: "wx" })),
    "it exists already",
  );
  assert.equal(
    problemOf(() => readFileSync(at("loop"))),
    "its symbolic links lead to each other",
  );
  assert.equal(
    problemOf(() => readFileSync(at("n".repeat(300)))),
    "its name is too long",
  );
  assert.equal(fileProblem(new Error("it is not UTF-8 text")), "it is not UTF-8 text");
});
