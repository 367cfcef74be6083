import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

test("a bundle gets other bundles and modules of Node.js, and an error for anything else", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "loader-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "other.cjs"), '((exports) => { exports.name = "other"; })');
  writeFileSync(
    join(folder, "bundle.cjs"),
    `((exports, require) => {
      exports.found = [require("./other.cjs").name, require("./other.cjs") === require("./other.cjs"), require("node:path").sep];
      // As libraries look for an optional one.
      try { require("bufferutil"); } catch ({ code }) { exports.code = code; }
    })`,
  );
  // In a process of its own: the loader sets flags of V8.
  const loader = JSON.stringify(new URL("./loader.ts", import.meta.url).href);
  const program = `import(${loader}).then(({ run }) => console.log(JSON.stringify(run(process.argv[1], "bundle.cjs"))))`;
  const printed = execFileSync(process.execPath, ["-e", program, folder], { encoding: "utf8" });
  assert.deepEqual(JSON.parse(printed), { found: ["other", true, "/"], code: "MODULE_NOT_FOUND" });
});
