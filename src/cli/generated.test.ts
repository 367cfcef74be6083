import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { appRoot } from "../base/app-root.ts";
import { commandPage, completionFiles } from "./generated.ts";

const hint = 'run "npm run generate" and look at what changed';

test("the help texts are the ones in docs/tgctl.md", () => {
  const page = readFileSync(join(appRoot, "docs/tgctl.md"), "utf8");
  assert.equal(page, commandPage(page), hint);
});

for (const [path, text] of completionFiles()) {
  test(`${path} is current`, () => {
    assert.equal(readFileSync(join(appRoot, path), "utf8"), text, hint);
  });
}

for (const [shell, file] of [
  ["bash", "tgctl.bash"],
  ["zsh", "_tgctl"],
  ["fish", "tgctl.fish"],
] as const) {
  const skip = spawnSync(shell, ["--version"]).error === undefined ? false : `${shell} is not installed`;
  test(`${shell} accepts its script`, { skip }, () => {
    execFileSync(shell, ["-n", join(appRoot, "completions", file)]);
  });
}

/** What bash offers after the words; the last one is being typed. */
function completeInBash(...words: string[]): string[] {
  const line = words.map((word) => `'${word}'`).join(" ");
  const script = `. "$1"; COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _tgctl; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync("bash", ["-c", script, "bash", join(appRoot, "completions/tgctl.bash")], {
    encoding: "utf8",
  });
  return output.trim().split("\n");
}

test("bash completes commands, aliases, options and values", () => {
  assert.deepEqual(completeInBash("tgctl", ""), [
    "proxy",
    "version",
    "help",
    "completion",
    "trace",
    "status",
    "config",
    "log",
    "profile",
  ]);
  assert.deepEqual(completeInBash("tgctl", "proxy", "--json", "c"), ["config"]);
  assert.deepEqual(completeInBash("tgctl", "proxy", "cfg", "be", "--a"), ["--all"]);
  assert.deepEqual(completeInBash("tgctl", "proxy", "log", "--local", "--level", "d"), ["debug"]);
  assert.deepEqual(completeInBash("tgctl", "proxy", "profile", "--sec"), ["--seconds"]);
  assert.deepEqual(completeInBash("tgctl", "config", "r"), ["routes"]);
  assert.deepEqual(completeInBash("tgctl", "trace", "-o", "t"), ["text"]);
  assert.deepEqual(completeInBash("tgctl", "help", "st"), ["status"]);
  assert.deepEqual(completeInBash("tgctl", "completion", "z"), ["zsh"]);
  assert.deepEqual(completeInBash("tgctl", "proxy", "trace", "--local", "--", "--"), [""]);
  assert.deepEqual(completeInBash("tgctl", "proxy", "trace", "-f", join(appRoot, "package.js")), [
    join(appRoot, "package.json"),
  ]);
});
