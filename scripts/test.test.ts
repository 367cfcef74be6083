import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { appRoot } from "../src/base/app-root.ts";

const folder = mkdtempSync(join(tmpdir(), "tracegate-runner-"));
after(() => rmSync(folder, { recursive: true }));

/** Runs `npm test` on a file with this content. */
async function run(name: string, content: string, ...options: string[]): Promise<{ code: unknown; output: string }> {
  const file = join(folder, name);
  writeFileSync(file, `import { test } from "node:test";\n${content}`);
  // Otherwise the runner takes itself for a test of the runner that started this file.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, [`${appRoot}scripts/test.ts`, ...options, file], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await ended;
  return { code, output: out + err };
}

test("a failed test fails the run", async () => {
  const { code, output } = await run("fails.test.mjs", 'test("fails", () => { throw new Error("why"); });');
  assert.equal(code, 1);
  assert.match(output, /why/);
});

test("--deny-skips: a skipped test fails the run, with its name, file and reason, unless the reason is accepted", async () => {
  const skipped = 'test("needs it", { skip: "no such program here" }, () => {});';
  assert.equal((await run("skips.test.mjs", skipped)).code, 0);
  const denied = await run("denied.test.mjs", skipped, "--deny-skips");
  assert.equal(denied.code, 1);
  assert.match(denied.output, /needs it \(.*denied\.test\.mjs\): no such program here/);
  const noReason = true; // The child process skips its test without a reason, which --deny-skips must find.
  const bare = `test("bare", ${JSON.stringify({ skip: noReason })}, () => {});`;
  const without = await run("without.test.mjs", bare, "--deny-skips");
  assert.equal(without.code, 1);
  assert.match(without.output, /bare \(.*\): no reason given/);
  const accepted = 'test("rate limits", { skip: "no Go here" }, () => {});';
  assert.equal((await run("accepted.test.mjs", accepted, "--deny-skips")).code, 0);
});

test("a name that matches no file and an unknown option are errors", async () => {
  const { code, output } = await run("ok.test.mjs", 'test("ok", () => {});', "--deny-skip");
  assert.deepEqual([code, output], [1, "test: unknown option --deny-skip; the only one is --deny-skips\n"]);
  const missing = await run("ok.test.mjs", 'test("ok", () => {});', "nowhere.test.ts");
  assert.deepEqual([missing.code, missing.output], [1, "test: no file matches nowhere.test.ts\n"]);
});
