import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { originOf, originOfBuild } from "./build-info.ts";

const DATE = "2026-03-02T10:20:30Z";

/** A repository with one commit of `DATE`; returns its folder with a slash, and the commit. */
function repository(t: TestContext): { readonly folder: string; readonly commit: string } {
  const folder = `${mkdtempSync(join(tmpdir(), "tracegate-origin-"))}/`;
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(`${folder}file`, "first");
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-C", folder, "-c", "user.name=t", "-c", "user.email=t@t", ...args], {
      encoding: "utf8",
      env: { ...process.env, GIT_COMMITTER_DATE: DATE },
    });
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "-m", "first");
  return { folder, commit: git("rev-parse", "HEAD").trim() };
}

test("a checkout has the hash and the date of its commit, and shows that files were changed", (t) => {
  const { folder, commit } = repository(t);
  assert.deepEqual(originOf(folder), { commit, buildDate: DATE });
  writeFileSync(`${folder}file`, "second");
  assert.deepEqual(originOf(folder), { commit: `${commit}-dirty`, buildDate: DATE });
});

test("a folder inside another repository has no origin", (t) => {
  const { folder } = repository(t);
  execFileSync("mkdir", [`${folder}inside`]);
  assert.deepEqual(originOf(`${folder}inside/`), { commit: "", buildDate: "" });
});

test("SOURCE_DATE_EPOCH and SOURCE_COMMIT take precedence in a build", (t) => {
  const { folder, commit } = repository(t);
  assert.deepEqual(originOfBuild(folder, {}), { commit, buildDate: DATE });
  assert.deepEqual(originOfBuild(folder, { SOURCE_DATE_EPOCH: "0", SOURCE_COMMIT: "" }), {
    commit,
    buildDate: "1970-01-01T00:00:00Z",
  });
  assert.equal(originOfBuild(folder, { SOURCE_COMMIT: "abc" }).commit, "abc");
  assert.throws(() => originOfBuild(folder, { SOURCE_DATE_EPOCH: "yesterday" }), /SOURCE_DATE_EPOCH .*"yesterday"/);
});
