/**
 * `NAME.jsonl` is the trace of a real request; `NAME.html`, `NAME.har` and `NAME.sh` what exports make of it, with `VERSION` in place of
 * the version. UPDATE_GOLDEN=1 writes them.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { packageVersion } from "../../src/base/build-info.ts";
import { invoke } from "../../src/cli/fixtures/invoke.ts";

const FOLDER = new URL("traces/", import.meta.url);
const FORMATS = { html: "html", har: "har", curl: "sh" };

for (const file of readdirSync(FOLDER).filter((each) => each.endsWith(".jsonl")))
  for (const [format, ending] of Object.entries(FORMATS))
    test(`${file} as ${format}`, async () => {
      const { stdout } = await invoke(["trace", "export", "--format", format, fileURLToPath(new URL(file, FOLDER))]);
      const text = stdout.replaceAll(packageVersion(), "VERSION");
      const path = new URL(file.replace(/jsonl$/, ending), FOLDER);
      if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(path, text);
      assert.equal(text, readFileSync(path, "utf8"));
    });
