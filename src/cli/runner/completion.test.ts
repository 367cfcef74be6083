import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { appRoot } from "../../base/app-root.ts";
import { invoke } from "../fixtures/invoke.ts";
import { completionScript, SHELLS } from "./completion.ts";

/** The words that are offered for the last one. */
async function complete(...words: string[]): Promise<(string | undefined)[]> {
  const { code, stdout } = await invoke(["__complete", ...words]);
  assert.equal(code, 0);
  const lines = stdout.split("\n");
  return lines.slice(0, -1).map((line) => line.split("\t")[0]);
}

test("commands, aliases, options and values are completed", async () => {
  const all = [
    "proxy",
    "controller",
    "check",
    "convert",
    "version",
    "help",
    "completion",
    "trace",
    "explain",
    "eval",
    "recent",
    "impact",
    "ui",
    "status",
    "routes",
    "backends",
    "certs",
    "config",
    "log",
    "profile",
  ];
  assert.deepEqual(await complete(""), all);
  assert.deepEqual(await complete("proxy", "--json", "c"), ["certs", "config"]);
  assert.deepEqual(await complete("proxy", "cfg", "be", "--a"), ["--all"]);
  assert.deepEqual(await complete("proxy", "log", "--local", "--level", "d"), ["debug"]);
  assert.deepEqual(await complete("proxy", "profile", "--sec"), ["--seconds"]);
  assert.deepEqual(await complete("proxy", "profile", ""), ["cpu", "heap"]);
  assert.deepEqual(await complete("config", "r"), ["routes"]);
  assert.deepEqual(await complete("trace", "-o", "t"), ["text"]);
  assert.deepEqual(await complete("eval", "1", "--scope", "re"), ["request", "response", "record"]);
  assert.deepEqual(await complete("help", "st"), ["status"]);
  assert.deepEqual(await complete("completion", "z"), ["zsh"]);
});

test("an option that was given is not offered again, unless it may be repeated", async () => {
  assert.deepEqual(await complete("proxy", "log", "--level", "debug", "--le"), []);
  assert.deepEqual(await complete("proxy", "log", "--set", "a=info", "--se"), ["--set"]);
});

test("files are left to the shell; nothing is offered behind -- or a wrong word", async () => {
  assert.deepEqual(await complete("proxy", "trace", "-f", "package.js"), [":files"]);
  assert.deepEqual(await complete("trace", "open", "package.js"), [":files"]);
  assert.deepEqual(await complete("proxy", "trace", "--local", "--", "--"), []);
  assert.deepEqual(await complete("proxy", "nonsense", ""), []);
  assert.deepEqual(await complete("proxy", "trace", "--port", ""), []);
});

test("candidates have descriptions", async () => {
  const { stdout } = await invoke(["__complete", "stat"]);
  assert.match(stdout, /^status\t\S+ .*\n$/);
});

for (const shell of SHELLS) {
  const skip = spawnSync(shell, ["--version"]).error === undefined ? false : `${shell} is not installed`;
  test(`${shell} accepts its script`, { skip }, () => {
    const folder = mkdtempSync(join(tmpdir(), "tgctl-completion-"));
    const file = join(folder, "script");
    writeFileSync(file, completionScript(shell, "tgctl"));
    execFileSync(shell, ["-n", file]);
    rmSync(folder, { recursive: true });
  });

  if (shell === "zsh") continue;
  test(`${shell} completes command lines of the real program`, { skip }, () => {
    assert.deepEqual(completeIn[shell]("tgctl proxy --json c"), ["certs", "config"]);
    assert.deepEqual(completeIn[shell]("tgctl proxy log --level d"), ["debug"]);
    assert.deepEqual(completeIn[shell](`tgctl trace -f ${join(appRoot, "package.js")}`), [
      join(appRoot, "package.json"),
    ]);
  });
}

const env = { ...process.env, PATH: `${join(appRoot, "bin")}:${process.env.PATH}` };

const completeIn = {
  bash(line: string): string[] {
    const words = line.split(" ");
    const script = `${completionScript("bash", "tgctl")}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _tgctl; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync("bash", ["-c", script], { encoding: "utf8", env }).trim().split("\n");
  },
  fish(line: string): string[] {
    const script = `${completionScript("fish", "tgctl")}\ncomplete -C '${line}'`;
    const output = execFileSync("fish", ["-c", script], { encoding: "utf8", env }).trim();
    return output.split("\n").map((each) => each.split("\t")[0] ?? "");
  },
};
