/** The gateway as a unit of systemd: what it sends to the socket of sd_notify, by the real `systemd-notify`. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { freePorts } from "../../helpers/free-ports.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { TRACEGATE } from "../../helpers/programs.ts";
import { takeOver } from "../../helpers/take-over.ts";

const run = promisify(execFile);
const missing = await Promise.all([run("systemd-notify", ["--version"]), run("python3", ["--version"])]).then(
  () => false,
  () => "no systemd-notify or python3 here",
);

/** Node.js has no sockets of this kind. Prints each message as a line of JSON. */
const RECEIVER = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(json.dumps(s.recv(4096).decode()), flush=True)
`;
const PATIENCE_MS = 60_000;

/** The socket that systemd listens on. */
class NotifySocket implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "tracegate-notify-"));
  readonly path = join(this.#folder, "notify");
  readonly #receiver: ChildProcess;
  #text = "";

  constructor() {
    this.#receiver = spawn("python3", ["-c", RECEIVER, this.path], { stdio: ["ignore", "pipe", "inherit"] });
    this.#receiver.stdout?.on("data", (part: Buffer) => {
      this.#text += part.toString();
    });
  }

  /** Messages so far, without those of the watchdog and of the barrier by which `systemd-notify` waits. */
  get messages(): string[][] {
    return this.#lines
      .map((line) => (JSON.parse(line) as string).trim().split("\n"))
      .filter(([first = ""]) => first !== "WATCHDOG=1" && first !== "BARRIER=1");
  }

  get watched(): number {
    return this.#lines.filter((line) => line.includes("WATCHDOG=1")).length;
  }

  get #lines(): string[] {
    return this.#text.split("\n").slice(1, -1);
  }

  async until(condition: () => boolean, what: string): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!condition()) {
      if (Date.now() > deadline) throw new Error(`waited too long for ${what}: ${this.#text}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async bound(): Promise<void> {
    await this.until(() => this.#text.startsWith("bound\n"), "the socket");
  }

  [Symbol.dispose](): void {
    this.#receiver.kill();
    rmSync(this.#folder, { recursive: true });
  }
}

const config = (host: string): object => ({
  binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ host }] }] }] }],
});

test("systemd is notified when the gateway is ready, is alive, reloads, rejects a configuration and stops", {
  skip: missing,
}, async () => {
  using socket = new NotifySocket();
  await socket.bound();
  const env = { NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: "200000" };
  const gateway = await GatewayProcess.start(config("127.0.0.1:9"), { env });
  try {
    await socket.until(() => socket.messages.length > 0, "READY");
    assert.deepEqual(socket.messages, [["READY=1", "STATUS=Serving"]]);
    await socket.until(() => socket.watched > 2, "signs of life");
    gateway.process.kill("SIGHUP");
    await socket.until(() => socket.messages.length > 2, "the reload");
    const [, [reloading, monotonic] = [], done] = socket.messages;
    assert.equal(reloading, "RELOADING=1");
    assert.match(monotonic ?? "", /^MONOTONIC_USEC=\d{6,}$/);
    assert.deepEqual(done, ["READY=1", "STATUS=Serving"]);
    // Without a signal, because the file has changed.
    writeFileSync(gateway.file, "binds: nonsense");
    await socket.until(() => socket.messages.length > 3, "the rejection");
    const [rejected = ""] = socket.messages[3] ?? [];
    assert.match(rejected, /^STATUS=Serving the former configuration, .*binds/);
    gateway.process.kill("SIGHUP");
    await socket.until(() => socket.messages.length > 5, "the second rejection");
    assert.deepEqual(socket.messages[5], ["READY=1", rejected]);
    writeFileSync(gateway.file, JSON.stringify(config("127.0.0.1:9")));
    await socket.until(() => socket.messages.length > 6, "the status after the file was mended");
    assert.deepEqual(socket.messages[6], ["STATUS=Serving"]);
    gateway.process.kill("SIGTERM");
    assert.equal(await gateway.exited(), 0);
    await socket.until(() => socket.messages.length > 7, "the end");
    assert.deepEqual(socket.messages[7], ["STOPPING=1", "STATUS=Draining"]);
  } finally {
    await gateway.stop();
  }
});

test("a process that takes over becomes the main one of the unit, and the former one says no more", {
  skip: missing,
}, async () => {
  using socket = new NotifySocket();
  await socket.bound();
  const runtime = mkdtempSync(join(tmpdir(), "tracegate-runtime-"));
  const gateway = await GatewayProcess.start(config("127.0.0.1:9"), {
    env: { NOTIFY_SOCKET: socket.path, RUNTIME_DIRECTORY: runtime, WATCHDOG_USEC: "200000" },
  });
  let serves: number | undefined;
  try {
    await socket.until(() => existsSync(join(runtime, `${gateway.process.pid}.sock`)), "the socket for take-overs");
    const outcome = await takeOver(gateway, { RUNTIME_DIRECTORY: runtime });
    assert.ok("serves" in outcome, JSON.stringify(outcome));
    serves = outcome.serves;
    await socket.until(() => gateway.process.exitCode !== null, "the end of the former one");
    const { watched } = socket;
    await socket.until(() => socket.watched > watched + 2, "signs of life of the new one");
    assert.deepEqual(socket.messages, [
      ["READY=1", "STATUS=Serving"],
      ["READY=1", "STATUS=Serving", `MAINPID=${serves}`],
    ]);
  } finally {
    if (serves !== undefined) process.kill(serves, "SIGKILL");
    await gateway.stop();
    rmSync(runtime, { recursive: true });
  }
});

const noActivation = await run("systemd-socket-activate", ["--version"]).then(
  () => false,
  () => "no systemd-socket-activate here",
);

test("sockets of systemd serve the binds and servers with their addresses, and their files stay", {
  skip: noActivation,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-activated-"));
  const socketPath = join(folder, "app.sock");
  const [port = 0, admin = 0] = await freePorts(2);
  const routes = [{ policies: { directResponse: { status: 200, body: "activated" } } }];
  const file = join(folder, "gateway.yaml");
  writeFileSync(
    file,
    JSON.stringify({
      config: { adminAddr: `127.0.0.1:${admin}`, statsAddr: "off", readinessAddr: "off", workerThreads: 2 },
      binds: [{ port, address: ["127.0.0.1", `unix:${socketPath}`], listeners: [{ routes }] }],
    }),
  );
  const listen = [`127.0.0.1:${port}`, `127.0.0.1:${admin}`, socketPath].flatMap((each) => ["-l", each]);
  const child = spawn("systemd-socket-activate", [...listen, TRACEGATE, "-f", file], {
    stdio: "ignore",
    env: { ...process.env, RUNTIME_DIRECTORY: folder },
  });
  try {
    // The first connection starts the gateway, and waits for it.
    while (!existsSync(socketPath)) await new Promise((resolve) => setTimeout(resolve, 10));
    const text = await (await fetch(`http://127.0.0.1:${port}/`)).text();
    assert.equal(text, "activated");
    assert.equal((await fetch(`http://127.0.0.1:${admin}/overview`)).status, 200);
    const { stdout } = await run("curl", ["-s", "--unix-socket", socketPath, "http://localhost/"]);
    assert.equal(stdout, "activated");
    child.kill("SIGTERM");
    await once(child, "exit");
    assert.ok(existsSync(socketPath), "systemd goes on listening on it");
  } finally {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  }
});
