import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { TRACEGATE } from "../../helpers/programs.ts";

/** The addresses that the default leaves to their defaults, so that tests run beside other gateways. */
const OWN_PORTS = { ADMIN_ADDR: "off", STATS_ADDR: "off", READINESS_ADDR: "off", WORKER_THREADS: "1" };
const mounted = existsSync("/config") ? "this machine has a folder /config" : false;

suite("a start without -f and -c", { skip: mounted, concurrency: 1 }, () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "tracegate-default-"));
  });
  after(() => rm(folder, { recursive: true }));

  function spawnIn(home: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
    const { PATH = "" } = process.env;
    const own = { PATH, HOME: home, LOG_FORMAT: "json", ...OWN_PORTS };
    return spawn(TRACEGATE, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...own, ...env } });
  }

  test("runs on the user's own file, reloads it, and says which it is", async () => {
    const file = join(folder, "home", ".config", "tracegate", "config.yaml");
    await mkdir(join(file, ".."), { recursive: true });
    const serving = (body: string): string =>
      `binds: [{port: 0, listeners: [{routes: [{policies: {directResponse: {status: 200, body: ${body}}}}]}]}]`;
    await writeFile(file, serving("first"));
    const child = spawnIn(join(folder, "home"), []);
    try {
      assert.ok(child.stdout);
      const log = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const until = async (message: string): Promise<Record<string, unknown>> => {
        for (;;) {
          const { value, done } = await log.next();
          if (done === true) throw new Error(`the gateway ended before it said ${message}`);
          const line = JSON.parse(value) as Record<string, unknown>;
          if (line.message === message) return line;
        }
      };
      assert.equal((await until("no configuration was named, using the default")).file, file);
      const { port } = await until("serving");
      await until("ready");
      assert.equal(await (await fetch(`http://127.0.0.1:${String(port)}/`)).text(), "first");
      await writeFile(file, serving("second"));
      await until("configuration reloaded");
      assert.equal(await (await fetch(`http://127.0.0.1:${String(port)}/`)).text(), "second");
    } finally {
      child.kill("SIGKILL");
      await once(child, "close");
    }
  });

  test("creates a working file if none exists", async () => {
    const file = join(folder, "xdg", "tracegate", "config.yaml");
    const child = spawnIn(folder, [], { XDG_CONFIG_HOME: join(folder, "xdg") });
    let log = "";
    assert.ok(child.stdout);
    // Port 4000 may be taken on this machine; only the file and its log line matter here.
    for await (const part of child.stdout) {
      log += String(part);
      if (log.includes('"created a configuration"')) break;
    }
    child.kill("SIGKILL");
    await once(child, "exit");
    assert.ok(log.includes(JSON.stringify(file)), log);
    const check = spawnIn(folder, ["check", "-f", file]);
    assert.ok(check.stdout);
    assert.equal(await text(check.stdout), "valid: 1 bind, 1 listener, 1 route, 0 backends\n");
  });

  test("--validate-only creates nothing", async () => {
    const child = spawnIn(join(folder, "nobody"), ["--validate-only"]);
    assert.ok(child.stdout);
    assert.equal(await text(child.stdout), "No local configuration\nConfiguration is valid!\n");
    assert.equal(existsSync(join(folder, "nobody")), false);
  });

  test("in Kubernetes a configuration must be named", async () => {
    const child = spawnIn(folder, [], { KUBERNETES_SERVICE_HOST: "10.0.0.1" });
    assert.ok(child.stderr);
    const [err] = await Promise.all([text(child.stderr), once(child, "close")]);
    assert.equal(child.exitCode, 1);
    assert.equal(
      err,
      "tracegate: configuration is required when running in Kubernetes; pass --config, --file, or set LOCAL_XDS_PATH\n",
    );
  });
});
