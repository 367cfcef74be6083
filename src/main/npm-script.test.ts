import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { isNpmScript, onceEach } from "./npm-script.ts";

test("processes below an npm script inherit its environment but do not count as the script", async (t) => {
  const start = async (title: string): Promise<number> => {
    const process = spawn(
      "node",
      ["-e", `process.title = "${title}"; process.stdout.write("ok"); process.stdin.resume()`],
      {
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
    t.after(() => process.kill());
    await once(process.stdout, "data");
    return process.pid ?? 0;
  };
  const env = { npm_lifecycle_event: "test", npm_execpath: "/opt/pnpm.cjs" };
  const npm = await start("npm start");
  assert.equal(isNpmScript(env, npm), true);
  assert.equal(isNpmScript({}, npm), false);
  assert.equal(isNpmScript(env, await start("node /opt/pnpm.cjs start")), true);
  assert.equal(isNpmScript(env, await start("node npm.js")), false);
});

test("a signal that npm passes on counts once, and a later one counts again", (t) => {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  const handled: string[] = [];
  const onSignal = onceEach((signal: string) => handled.push(signal));
  onSignal("SIGINT");
  now += 5;
  onSignal("SIGINT");
  onSignal("SIGTERM");
  now += 2000;
  onSignal("SIGINT");
  assert.deepEqual(handled, ["SIGINT", "SIGTERM", "SIGINT"]);
});
