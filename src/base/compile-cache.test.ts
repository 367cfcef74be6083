import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { appRoot } from "./app-root.ts";
import { compileCacheFolder } from "./compile-cache.ts";

function temporary(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cache-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return `${folder}/`;
}

test("the cache of a checkout is below its node_modules, and is created if it is missing", (t) => {
  const root = temporary(t);
  mkdirSync(`${root}node_modules`);
  for (const time of ["made", "there already"]) {
    assert.equal(compileCacheFolder(root), `${root}node_modules/.cache/compile`, time);
    assert.ok(existsSync(`${root}node_modules/.cache/compile`));
  }
});

test("without a folder that can be written to there is no cache", (t) => {
  const root = temporary(t);
  assert.equal(compileCacheFolder(root), undefined, "no node_modules");
  // /proc returns ENOENT for a new folder.
  symlinkSync("/proc", `${root}node_modules`);
  assert.equal(compileCacheFolder(root), undefined, "/proc");
  rmSync(`${root}node_modules`);
  mkdirSync(`${root}node_modules`);
  writeFileSync(`${root}node_modules/.cache`, "");
  assert.equal(compileCacheFolder(root), undefined, "a file in its place");
});

test("both launchers start with the cache; an environment variable takes precedence", (t) => {
  const folder = temporary(t);
  const probe = `${folder}probe.cjs`;
  writeFileSync(
    probe,
    `process.on("exit", () => require("fs").writeSync(2, "cache " + require("module").getCompileCacheDir()));`,
  );
  const { NODE_COMPILE_CACHE: _, ...clean } = process.env;
  const cacheOf = (program: string, env: NodeJS.ProcessEnv) => {
    const shell = `${appRoot}bin/${program} --version 2>&1 >/dev/null`;
    const text = execFileSync("sh", ["-c", shell], {
      env: { ...env, NODE_OPTIONS: `--require ${probe}` },
      encoding: "utf8",
    });
    return text.replace(/^cache /, "");
  };
  for (const program of ["tgctl", "tracegate"]) {
    assert.ok(cacheOf(program, clean).startsWith(`${appRoot}node_modules/.cache/compile`), program);
    assert.ok(cacheOf(program, { ...clean, NODE_COMPILE_CACHE: `${folder}own` }).startsWith(`${folder}own`), program);
  }
});
