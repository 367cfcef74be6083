/**
 * `NAME.jsonl` is the trace of a real request; `NAME.html`, `NAME.har` and `NAME.sh` are exports of it, with `VERSION` in place of the
 * version. UPDATE_GOLDEN=1 rewrites those that exist. One page is enough: pages are large, and `html.test.ts` covers the rest.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { packageVersion } from "../../src/base/build-info.ts";
import { invoke } from "../../src/cli/fixtures/invoke.ts";

const FOLDER = new URL("traces/", import.meta.url);
const FORMATS: Readonly<Record<string, string>> = { ".html": "html", ".har": "har", ".sh": "curl" };

for (const golden of readdirSync(FOLDER)) {
  const format = FORMATS[extname(golden)];
  if (format === undefined) continue;
  test(golden, async () => {
    const path = new URL(golden, FOLDER);
    const trace = new URL(golden.replace(/\w+$/, "jsonl"), FOLDER);
    const { stdout } = await invoke(["trace", "export", "--format", format, fileURLToPath(trace)]);
    const text = stdout.replaceAll(packageVersion(), "VERSION");
    if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(path, text);
    assert.equal(text, readFileSync(path, "utf8"));
  });
}
