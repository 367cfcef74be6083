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

/** Writes a test file. */
function write(name: string, content: string): string {
  const file = join(folder, name);
  writeFileSync(file, `import { beforeEach, test } from "node:test";\n${content}`);
  return file;
}

/** Runs `npm test` on a file with this content. */
async function run(name: string, content: string, ...options: string[]): Promise<{ code: unknown; output: string }> {
  return runAll(...options, write(name, content));
}

/** Runs `npm test` with these arguments. */
async function runAll(...args: string[]): Promise<{ code: unknown; output: string }> {
  // Otherwise the runner takes itself for a test of the runner that started this file.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, [`${appRoot}scripts/test.ts`, ...args], {
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

test("files share a process, but not their hooks", async () => {
  const where = "console.log(`process ${process.pid}`);";
  const first = write("first.test.mjs", `beforeEach(() => console.log("hook")); test("a", () => {}); ${where}`);
  const second = write("second.test.mjs", `test("b", () => {}); test("c", () => {}); ${where}`);
  const { code, output } = await runAll(first, second);
  assert.equal(code, 0);
  for (const name of [first, second, "a", "b", "c"]) assert.match(output, new RegExp(`✔ ${name} `));
  assert.equal(output.match(/^hook$/gm)?.length, 1);
  assert.equal(new Set(output.match(/^process \d+$/gm)).size, 1);
});

test("a file that cannot be loaded, and one that ends its process, fail the run; others have their results", async () => {
  const good = write("good.test.mjs", 'test("good", () => {});');
  const broken = await runAll(write("broken.test.mjs", 'throw new Error("no load");'), good);
  assert.equal(broken.code, 1);
  assert.match(broken.output, /no load/);
  assert.match(broken.output, /✔ good /);
  const ends = write("ends.test.mjs", 'test("ends", () => process.exit(0));');
  const ended = await runAll(ends, good);
  assert.equal(ended.code, 1);
  assert.ok(ended.output.endsWith(`test: a process ended before it had run these files:\n  ${ends}\n  ${good}\n`));
});

test("a name that matches no file and an unknown option are errors", async () => {
  const { code, output } = await run("ok.test.mjs", 'test("ok", () => {});', "--deny-skip");
  assert.deepEqual([code, output], [1, "test: unknown option --deny-skip; the only one is --deny-skips\n"]);
  const missing = await run("ok.test.mjs", 'test("ok", () => {});', "nowhere.test.ts");
  assert.deepEqual([missing.code, missing.output], [1, "test: no file matches nowhere.test.ts\n"]);
});
