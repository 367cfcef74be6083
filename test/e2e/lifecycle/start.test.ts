import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { GatewayProcess, proxyTo } from "../../helpers/gateway.ts";
import { TRACEGATE } from "../../helpers/programs.ts";
import { call, Upstream } from "../trace/support.ts";

async function tracegate(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const child = spawn(TRACEGATE, args, { stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  return { code, stdout, stderr };
}

suite("start", () => {
  let upstream: Upstream;
  let gateway: GatewayProcess;

  before(async () => {
    upstream = await Upstream.start();
    gateway = await GatewayProcess.start(proxyTo(upstream.address));
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const failure = async (config: object | string): Promise<string> => {
    await using other = await GatewayProcess.launch(config);
    const [code] = await once(other.process, "close");
    assert.equal(code, 1);
    assert.equal(other.ready, false);
    return other.stderr;
  };

  test("a port that another gateway of the same user serves is an error, not shared", async () => {
    const port = gateway.port();
    const bind = { port, listeners: [{ protocol: "HTTP", routes: [{ backends: [{ host: upstream.address }] }] }] };
    assert.match(
      await failure({ binds: [bind] }),
      new RegExp(`cannot listen on port ${port} for bind/${port}: .*in use; .*`),
    );
  });

  test("an admin address in use is reported with its setting", async () => {
    const { host } = new URL(gateway.url("admin"));
    const stderr = await failure({ ...proxyTo(upstream.address), config: { adminAddr: host } });
    assert.match(stderr, /adminAddr/);
    assert.match(stderr, /in use/);
  });

  test("an invalid configuration is reported with the position of the problem", async () => {
    assert.match(await failure("binds:\n  - port: eighty\n    listeners: []\n"), /gateway\.yaml:2:11: error: /);
  });

  test("signals that make other servers rotate logs neither end the process nor open a debugger", async () => {
    gateway.process.kill("SIGUSR1");
    gateway.process.kill("SIGUSR2");
    await gateway.until(() => gateway.lines.some(({ signal }) => signal === "SIGUSR2"), "the line about it");
    assert.equal((await call(gateway.port(), {})).status, 200);
    assert.equal(gateway.stderr, "");
  });

  test("signals to reload or rotate logs do not end a gateway whose engine is still being loaded", async () => {
    // The first worker thread starts before the engine loads.
    const preload = `
      const threads = require("node:worker_threads");
      if (threads.isMainThread)
        threads.Worker = class extends threads.Worker {
          constructor(...options) {
            process.kill(process.pid, "SIGHUP");
            process.kill(process.pid, "SIGUSR2");
            console.log('{"message":"signalled"}');
            super(...options);
          }
        };
      require("node:module").syncBuiltinESMExports();`;
    const folder = await mkdtemp(join(tmpdir(), "tracegate-test-"));
    try {
      const file = join(folder, "preload.cjs");
      await writeFile(file, preload);
      const env = { NODE_OPTIONS: `--require=${file}` };
      await using other = await GatewayProcess.start(proxyTo(upstream.address), { env });
      assert.equal(other.lines[0]?.message, "signalled");
      assert.equal((await call(other.port(), {})).status, 200);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("a reload with a port in use is rejected; the old configuration stays in effect", async () => {
    await using other = await GatewayProcess.start(proxyTo(upstream.address));
    const bind = { port: gateway.port(), listeners: [{ protocol: "HTTP", routes: [] }] };
    assert.equal(await other.reconfigure({ binds: [bind] }), "rejected");
    assert.equal((await call(other.port(), {})).status, 200);
    const status = (await (await fetch(`${other.url("admin")}/config/status`)).json()) as {
      lastError: { message: string };
    };
    assert.match(status.lastError.message, /in use/);
  });

  test("in Kubernetes the snapshots of a trace name the replica", async () => {
    const env = { POD_NAME: "gw-1", NAMESPACE: "edge", GATEWAY: "public" };
    await using pod = await GatewayProcess.start(proxyTo(upstream.address), { env });
    const answer = fetch(`${pod.url("admin")}/debug/trace`, { method: "POST" });
    const stream = await answer;
    await call(pod.port(), {});
    const snapshots = (await stream.text()).split("\n").filter((line) => line.includes('"requestState"'));
    assert.equal(snapshots.length, 7);
    for (const line of snapshots)
      assert.ok(line.includes('"env":{"podName":"gw-1","namespace":"edge","gateway":"public"}'), line);
  });

  test("the command line: version, help, wrong usage", async () => {
    const version = await tracegate("-V");
    assert.equal(version.code, 0);
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);
    assert.match((await tracegate("--help")).stdout, /^A gateway that shows .*Usage:/s);
    for (const args of [["--no-such-option"], ["dance"], ["-f", "a", "-c", "b"]]) {
      const { code, stderr } = await tracegate(...args);
      assert.equal(code, 2, args.join(" "));
      assert.match(stderr, /^tracegate: /);
    }
    const validated = await tracegate("-f", gateway.file, "--validate-only");
    assert.deepEqual([validated.code, validated.stdout], [0, "Configuration is valid!\n"]);
  });
});
