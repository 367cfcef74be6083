import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { appRoot } from "../../../src/base/app-root.ts";
import { TRACEGATE } from "../../helpers/programs.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

const PATIENCE_MS = 60_000;
const CONFIG = `
config: { adminAddr: "off", statsAddr: "off", readinessAddr: "off", workerThreads: 1 }
binds: [{ port: 0, listeners: [{ routes: [{ policies: { buffer: { request: { maxBytes: 8 } }, directResponse: { status: 200 } } }] }] }]
`;

/** `npm start` with the script of this package, but another command: the quick start has fixed ports. */
async function npmStart(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-npm-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const { scripts } = JSON.parse(readFileSync(`${appRoot}package.json`, "utf8"));
  const start: string = scripts.start.replace("bin/tracegate quickstart", `${TRACEGATE} -f gateway.yaml`);
  assert.ok(start.includes(TRACEGATE), start);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, scripts: { start } }));
  writeFileSync(join(folder, "gateway.yaml"), CONFIG);
  // In a process group of its own, so that a signal to it can stand for Ctrl-C, and nothing is left behind.
  const npm = spawn("npm", ["start"], {
    cwd: folder,
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, LOG_FORMAT: "json" },
  });
  const group = -(npm.pid ?? 0);
  t.after(() => {
    try {
      process.kill(group, "SIGKILL");
    } catch {
      // It has ended.
    }
  });
  let log = "";
  const ready = Promise.withResolvers<void>();
  npm.stdout.setEncoding("utf8").on("data", (text: string) => {
    log += text;
    if (log.includes('"message":"ready"')) ready.resolve();
  });
  // Closes when the gateway, which holds the other end, has ended.
  const closed = once(npm.stdout, "close", { signal: AbortSignal.timeout(PATIENCE_MS) });
  await Promise.race([ready.promise, closed]);
  return { npm, group, closed, log: () => log };
}

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  test(`a gateway of npm start drains when npm gets ${signal}`, async (t) => {
    const { npm, closed, log } = await npmStart(t);
    npm.kill(signal);
    await closed;
    assert.match(log(), /"message":"draining"/);
  });
}

// Ctrl-C in a terminal; the first process of a container that signals the group.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  test(`${signal} to the process group, which npm passes on to the gateway that got it already, drains`, async (t) => {
    const { group, closed, log } = await npmStart(t);
    const port = Number(/"port":(\d+)/.exec(log())?.[1]);
    // A request in progress, which a second signal would cut.
    const client = await RawPeer.connect(port);
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n");
    await client.take("100 Continue\r\n\r\n");
    process.kill(group, signal);
    await until(() => log().includes('"message":"draining"'), "the drain");
    client.send("ok");
    assert.equal(statusOf(await client.message()), 200);
    await closed;
    assert.match(log(), /"message":"draining"/);
  });
