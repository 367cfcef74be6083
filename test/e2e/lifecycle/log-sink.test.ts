import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { Agent, type RequestOptions, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { TRACEGATE } from "../../helpers/programs.ts";

const PATIENCE_MS = 60_000;
/** Makes a line of the access log longer than this. */
const LONG_PATH = `/${"x".repeat(8000)}`;
const DROPPED = "log lines were dropped";

/** A gateway with a standard output that the test chooses, and does not need to read. */
class Gateway {
  readonly child: ChildProcess;
  readonly #folder: string;
  stderr = "";

  private constructor(folder: string, child: ChildProcess) {
    this.#folder = folder;
    this.child = child;
    child.stderr?.on("data", (text) => {
      this.stderr += String(text);
    });
  }

  /** `shell` runs before the gateway, in the process that it becomes. */
  static async start(stdout: "pipe" | number, shell = ":"): Promise<Gateway> {
    const folder = await mkdtemp(join(tmpdir(), "tracegate-log-"));
    const file = join(folder, "gateway.json");
    const policies = { directResponse: { status: 200, body: "served" } };
    const config = {
      config: {
        adminAddr: `unix:${join(folder, "admin")}`,
        statsAddr: `unix:${join(folder, "stats")}`,
        readinessAddr: `unix:${join(folder, "ready")}`,
        workerThreads: 1,
      },
      binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes: [{ name: "r", policies }] }] }],
    };
    await writeFile(file, JSON.stringify(config));
    const { NODE_COMPILE_CACHE: _, ...env } = process.env;
    const child = spawn("sh", ["-c", `${shell}; exec "$0" -f "$1"`, TRACEGATE, file], {
      stdio: ["ignore", stdout, "pipe"],
      env: { ...env, LOG_FORMAT: "json" },
    });
    const gateway = new Gateway(folder, child);
    await gateway.until(async () => (await gateway.#ask("ready", "/healthz/ready")) === "ready\n", "readiness");
    return gateway;
  }

  /** Sends requests one after the other; each must be served. */
  async serve(requests: number, path: string): Promise<void> {
    const dump = JSON.parse((await this.#ask("admin", "/config_dump")) ?? "") as { binds: { address: string }[] };
    const port = Number(dump.binds[0]?.address.split(":").at(-1));
    const agent = new Agent({ keepAlive: true });
    for (let i = 0; i < requests; i++) assert.equal(await get({ agent, port, path }), "served");
    agent.destroy();
  }

  async dropped(reason: string): Promise<number> {
    const text = (await this.#ask("stats", "/metrics")) ?? "";
    return Number(new RegExp(`^tracegate_log_lines_dropped_total\\{reason="${reason}"\\} (\\d+)`, "m").exec(text)?.[1]);
  }

  async until(condition: () => Promise<boolean>, what: string): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!(await condition())) {
      assert.equal(this.child.exitCode ?? this.child.signalCode, null, `ended before ${what}: ${this.stderr}`);
      assert.ok(Date.now() < deadline, `waited too long for ${what}`);
      await delay(20);
    }
  }

  async terminate(): Promise<void> {
    this.child.kill("SIGTERM");
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
    assert.deepEqual([this.child.exitCode, this.child.signalCode, this.stderr], [0, null, ""]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill("SIGKILL");
      await once(this.child, "exit");
    }
    this.child.stdout?.destroy();
    await rm(this.#folder, { recursive: true });
  }

  /** Undefined without a response. */
  #ask(socket: string, path: string): Promise<string | undefined> {
    return get({ socketPath: join(this.#folder, socket), path }).catch(() => undefined);
  }
}

function get(options: RequestOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    request(options, async (response) => {
      let text = "";
      for await (const chunk of response) text += String(chunk);
      resolve(text);
    })
      .on("error", reject)
      .end();
  });
}

test("a full disk costs lines of the log and nothing else", async () => {
  const full = openSync("/dev/full", "w");
  await using gateway = await Gateway.start(full);
  closeSync(full);
  const before = await gateway.dropped("failed");
  await gateway.serve(20, "/");
  await gateway.until(async () => (await gateway.dropped("failed")) >= before + 20, "dropped lines");
  await gateway.terminate();
});

test("a reader that closes standard output costs lines of the log and nothing else", async () => {
  await using gateway = await Gateway.start("pipe");
  gateway.child.stdout?.destroy();
  await gateway.serve(20, "/");
  await gateway.until(async () => (await gateway.dropped("failed")) >= 20, "dropped lines");
  await gateway.serve(1, "/");
  await gateway.terminate();
});

test("a bounded number of lines waits for a stalled reader, which then reads how many are missing", async () => {
  await using gateway = await Gateway.start("pipe");
  const requests = 1500;
  await gateway.serve(requests, LONG_PATH);
  await gateway.until(async () => (await gateway.dropped("queue_full")) > 0, "dropped lines");
  let text = "";
  gateway.child.stdout?.on("data", (chunk) => {
    text += String(chunk);
  });
  const lines = (): Record<string, unknown>[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const missing = (): number =>
    lines().reduce((sum, { message, lines }) => sum + (message === DROPPED ? Number(lines) : 0), 0);
  const read = (): number => lines().filter((line) => line["http.path"] === LONG_PATH).length;
  await gateway.until(async () => read() + missing() === requests, "every line, or that it is missing");
  assert.equal(missing(), await gateway.dropped("queue_full"));
  assert.ok(text.length < 6 * 1024 * 1024, `${text.length} bytes had waited`);
  await gateway.terminate();
});

test("a file that cannot grow costs lines; when there is room again it says how many, and every line is whole", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tracegate-log-"));
  const file = join(folder, "log");
  const log = openSync(file, "a");
  try {
    // Blocks of 512 bytes, of 1024 in some shells.
    await using gateway = await Gateway.start(log, "ulimit -f 32");
    await gateway.serve(10, LONG_PATH);
    const whole = async (): Promise<number> => (await readFile(file, "utf8")).split(`${LONG_PATH}",`).length - 1;
    await gateway.until(async () => (await whole()) + (await gateway.dropped("failed")) === 10, "dropped lines");
    const size = (await stat(file)).size;
    assert.ok(size <= 32 * 1024, `${size} bytes`);
    await truncate(file);
    await gateway.serve(1, "/after");
    await gateway.until(async () => (await readFile(file, "utf8")).includes("/after"), "the line after");
    const written = (await readFile(file, "utf8")).trim().split("\n");
    const [first, ...rest] = written.map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(first?.message, DROPPED);
    assert.equal(first?.lines, await gateway.dropped("failed"));
    assert.deepEqual(
      rest.map((line) => line["http.path"]),
      ["/after"],
    );
    await gateway.terminate();
  } finally {
    closeSync(log);
    await rm(folder, { recursive: true });
  }
});
