import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { TRACEGATE } from "../../helpers/programs.ts";

const PATIENCE_MS = 60_000;
const CONFIG = `
config: { workerThreads: 1 }
binds: [{ port: 0, listeners: [{ routes: [{ policies: { directResponse: { status: 200, body: hello } } }] }] }]
`;
/** Node.js as the program, with the gateway's log as its argument. */
const program = (script: string, log: string): string[] => [process.execPath, "--eval", script, log];
/** Sends a request to the gateway with this log. */
const ASK = `
const lines = require("node:fs").readFileSync(process.argv[1], "utf8").trim().split("\\n").map(JSON.parse);
const { port } = lines.find(({ message }) => message === "serving");
fetch("http://127.0.0.1:" + port).then((response) => response.text()).then((body) => {
  console.log(body);
  process.exitCode = 7;
});`;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

function start(...args: string[]): Child {
  return spawn(TRACEGATE, ["oneshot", ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, LOG_FORMAT: "json" },
  });
}

async function outcome(child: Child): Promise<{ code: number | null; out: string; err: string }> {
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: child.exitCode, out, err };
}

/** The gateway's log line about a server or bind that began to listen. */
async function portIn(log: string, what: Readonly<Record<string, string>>): Promise<number> {
  const lines = (await readFile(log, "utf8")).trim().split("\n");
  const said = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find((line) => Object.entries(what).every(([name, value]) => line[name] === value));
  return Number(said?.port ?? /\d+$/.exec(String(said?.address))?.[0]);
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once("connect", () => resolve(true));
  socket.once("error", () => resolve(false));
  const open = await promise;
  socket.destroy();
  return open;
}

async function closed(port: number): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (await isOpen(port)) {
    assert.ok(Date.now() < deadline, "the gateway still listens");
    await pause(50);
  }
}

suite("tracegate oneshot", { concurrency: 2 }, () => {
  let folder: string;
  let file: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "tracegate-oneshot-"));
    file = join(folder, "gateway.yaml");
    await writeFile(file, CONFIG);
  });
  after(() => rm(folder, { recursive: true }));

  test("the program starts when the gateway is ready; its output and exit code are passed on; then no process is left", async () => {
    const log = join(folder, "served.log");
    const child = start("-f", file, "--output", log, "--", ...program(ASK, log));
    assert.deepEqual(await outcome(child), { code: 7, out: "hello\n", err: "" });
    assert.equal(await isOpen(await portIn(log, { message: "serving" })), false);
  });

  test("without --output the log goes to standard error; the configuration may be text, and the program gets standard input", async () => {
    const child = start("-c", CONFIG, "--", "cat");
    child.stdin.end("for the program\n");
    const { code, out, err } = await outcome(child);
    assert.deepEqual([code, out], [0, "for the program\n"]);
    assert.match(err, /"message":"ready"/);
  });

  test("a signal is forwarded to the program, and its death by a signal is reported as shells do", async () => {
    for (const [script, expected] of [
      ["process.once('SIGTERM', () => process.exit(5))", 5],
      ["", 143],
    ] as const) {
      const log = join(folder, `signal-${expected}.log`);
      const wait = `${script}; setInterval(() => {}, 60_000); console.log("up")`;
      const child = start("-f", file, "--output", log, "--", ...program(wait, log));
      await once(child.stdout, "data");
      child.kill("SIGTERM");
      assert.equal((await outcome(child)).code, expected);
      assert.equal(await isOpen(await portIn(log, { message: "serving" })), false);
    }
  });

  test("if it is killed, its gateway stops too", async () => {
    const log = join(folder, "killed.log");
    const child = start(
      "-f",
      file,
      "--output",
      log,
      "--",
      ...program("console.log('up'); process.stdin.resume()", log),
    );
    await once(child.stdout, "data");
    const port = await portIn(log, { message: "serving" });
    assert.equal(await isOpen(port), true);
    child.kill("SIGKILL");
    await once(child, "exit");
    await closed(port);
    // The program is an orphan now, and ends with its input.
    child.stdin.end();
    await text(child.stdout);
  });

  test("a gateway that exits first is reported, and the program continues", async () => {
    const log = join(folder, "quit.log");
    const child = start(
      "-f",
      file,
      "--output",
      log,
      "--",
      ...program("console.log('up'); process.stdin.resume()", log),
    );
    await once(child.stdout, "data");
    const told = once(child.stderr, "data");
    const admin = await portIn(log, { message: "listening", server: "admin" });
    assert.equal((await fetch(`http://127.0.0.1:${admin}/quitquitquit`, { method: "POST" })).status, 200);
    assert.match(String(await told), /the gateway exited with code 0; the program continues without it/);
    child.stdin.end();
    assert.equal((await outcome(child)).code, 0);
  });

  test("a gateway that does not start, and a program that does not exist", async () => {
    const log = join(folder, "none.log");
    const [refused, missing, unwritable] = await Promise.all([
      outcome(start("-c", "binds: 1", "--", "echo", "ran")),
      outcome(start("-f", file, "--output", log, "--", join(folder, "no-such-program"))),
      outcome(start("-f", file, "--output", join(folder, "no/folder"), "--", "echo", "ran")),
    ]);
    assert.deepEqual([refused.code, refused.out], [1, ""]);
    assert.match(refused.err, /--config:1:8: error: binds: is 1; expected a list/);
    assert.equal(missing.code, 127);
    assert.match(missing.err, /no-such-program: no such program/);
    assert.equal(await isOpen(await portIn(log, { message: "serving" })), false);
    assert.deepEqual([unwritable.code, unwritable.out], [1, ""]);
    assert.match(unwritable.err, /tracegate: --output \S+: it does not exist/);
  });
});
