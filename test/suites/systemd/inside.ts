/**
 * What `npm run systemd` does inside the other Linux: uses the unit as its page says, and prints `ok: …` or `FAILED: …` for each case, then
 * `end`. It runs alone, from a file that has nothing beside it.
 */
import assert from "node:assert/strict";
import { type ExecFileException, execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, get, type Server, type ServerResponse } from "node:http";
import { setTimeout as after } from "node:timers/promises";

const CONFIGURATION = "/etc/tracegate/gateway.yaml";
const UNITS = "/etc/systemd/system";
const DROP_INS = `${UNITS}/tracegate.service.d`;
/** Milliseconds that a state may take to come about; everything is slow here. */
const PATIENCE = 180_000;
/** Between two looks at a state: a look is a process. */
const POLL = 300;
/** Clients that send requests meanwhile, each over a new connection, and milliseconds between two requests of one: the gateway needs the processor too. */
const CLIENTS = 4;
const PAUSE = 20;

const slow: ServerResponse[] = [];
const backend = createServer((_request, response) => void slow.push(response));

const CASES: Readonly<Record<string, () => Promise<void>>> = {
  "systemctl start waits until the gateway serves on port 80, as a user of its own with no other right": async () => {
    // Everything is slow here.
    dropIn("patience.conf", "[Service]\nTimeoutStartSec=300\nWatchdogSec=180\n");
    await systemctl("daemon-reload");
    configure("one");
    await systemctl("start", "tracegate");
    assert.equal(await answer(), "one");
    const { MainPID, StatusText, User } = shown("MainPID", "StatusText", "User");
    assert.equal(StatusText, "Serving");
    const status = readFileSync(`/proc/${MainPID}/status`, "utf8");
    assert.match(status, /^CapEff:\s+0000000000000400$/m);
    assert.doesNotMatch(status, /^Uid:\s+0\s/m, User);
  },
  "systemctl reload reads the configuration again, and keeps the former one if it is invalid": async () => {
    const { MainPID } = shown("MainPID");
    configure("two");
    await systemctl("reload", "tracegate");
    await until("the new answer", async () => (await answer()) === "two");
    writeFileSync(CONFIGURATION, "binds: wrong\n");
    await systemctl("reload", "tracegate");
    await until("a status that says so", () => /reject/i.test(shown("StatusText").StatusText ?? ""));
    assert.equal(await answer(), "two");
    assert.equal(shown("MainPID").MainPID, MainPID);
  },
  "with the drop-in, systemctl reload is a take-over: no request fails, and one in flight ends": async () => {
    configure("three");
    dropIn(
      "take-over.conf",
      `[Service]\nExecReload=\nExecReload=/usr/local/bin/tracegate --take-over -f ${CONFIGURATION}\n`,
    );
    await systemctl("daemon-reload");
    for (let round = 0; round < 2; round++) {
      const before = shown("MainPID").MainPID ?? "";
      const inFlight = answer("/slow");
      await until("the request in flight", () => slow.length > 0);
      const load = new Load();
      await systemctl("reload", "tracegate");
      const { MainPID, ActiveState, NRestarts } = shown("MainPID", "ActiveState", "NRestarts");
      assert.notEqual(MainPID, before);
      assert.deepEqual([ActiveState, NRestarts], ["active", "0"]);
      assert.deepEqual(await load.end(), []);
      assert.ok(load.served > 0);
      for (const response of slow.splice(0)) response.end("slow");
      assert.equal(await inFlight, "slow");
      await until("the end of the former process", () => !isAlive(before));
      assert.equal(shown("ActiveState").ActiveState, "active");
      console.log(`  ${load.served} requests`);
    }
  },
  "a take-over that fails is a reload that fails, and the gateway keeps serving": async () => {
    const { MainPID } = shown("MainPID");
    writeFileSync(CONFIGURATION, "binds: wrong\n");
    await assert.rejects(systemctl("reload", "tracegate"));
    assert.equal(await answer(), "three");
    const { ActiveState, MainPID: still } = shown("MainPID", "ActiveState");
    assert.deepEqual([ActiveState, still], ["active", MainPID]);
  },
  "a process that took over and is killed is started again": async () => {
    configure("three");
    const { MainPID = "" } = shown("MainPID");
    execFileSync("kill", ["-KILL", MainPID]);
    await until(
      "another process",
      () => shown("MainPID").MainPID !== MainPID && shown("ActiveState").ActiveState === "active",
    );
    assert.equal(await answer(), "three");
  },
  "a process that took over and hangs is restarted by the watchdog": async () => {
    // A process that is stopped does not even take the signal with which systemd asks it to end.
    configure("four");
    dropIn("watchdog.conf", "[Service]\nWatchdogSec=20\nTimeoutAbortSec=2\n");
    await systemctl("daemon-reload");
    await systemctl("restart", "tracegate");
    await systemctl("reload", "tracegate");
    const { MainPID = "" } = shown("MainPID");
    execFileSync("kill", ["-STOP", MainPID]);
    await until(
      "another process",
      () => shown("MainPID").MainPID !== MainPID && shown("ActiveState").ActiveState === "active",
    );
    assert.equal(await answer(), "four");
    assert.match(journal(), /Watchdog timeout/);
    rmSync(`${DROP_INS}/watchdog.conf`);
  },
  "with a socket unit, connections wait while the gateway restarts, also after it was killed": async () => {
    await systemctl("stop", "tracegate");
    writeFileSync(
      `${UNITS}/tracegate.socket`,
      "[Socket]\nListenStream=80\nListenStream=80\nReusePort=yes\nBacklog=4096\n[Install]\nWantedBy=sockets.target\n",
    );
    await systemctl("daemon-reload");
    await systemctl("start", "tracegate.socket");
    assert.equal(await answer(), "four", "the first connection starts the gateway");
    const load = new Load();
    await systemctl("restart", "tracegate");
    assert.deepEqual(await load.end(), []);
    console.log(`  ${load.served} requests`);
    const { MainPID = "" } = shown("MainPID");
    execFileSync("kill", ["-KILL", MainPID]);
    assert.equal(await answer(), "four");
    assert.notEqual(shown("MainPID").MainPID, MainPID);
  },
  "a take-over passes the sockets of systemd on, and a restart gets them again": async () => {
    const load = new Load();
    await systemctl("reload", "tracegate");
    await systemctl("restart", "tracegate");
    assert.deepEqual(await load.end(), []);
    console.log(`  ${load.served} requests`);
  },
  "systemctl stop drains: a request in flight ends, and nothing is left of the process": async () => {
    await systemctl("stop", "tracegate.socket");
    const inFlight = answer("/slow");
    await until("the request in flight", () => slow.length > 0);
    const stopped = systemctl("stop", "tracegate");
    await until("the drain", () => shown("StatusText").StatusText === "Draining");
    for (const response of slow.splice(0)) response.end("slow");
    assert.equal(await inFlight, "slow");
    await stopped;
    const { Result, ActiveState } = shown("Result", "ActiveState");
    assert.deepEqual([Result, ActiveState], ["success", "inactive"]);
  },
};

function configure(body: string): void {
  const { port } = (backend as Server).address() as { port: number };
  const routes = [
    { name: "slow", matches: [{ path: { exact: "/slow" } }], backends: [{ host: `127.0.0.1:${port}` }] },
    { name: "fast", policies: { directResponse: { status: 200, body } } },
  ];
  writeFileSync(
    CONFIGURATION,
    JSON.stringify({
      config: { workerThreads: 2, connectionTerminationDeadline: "60s", logging: { level: "info,request=off" } },
      binds: [{ port: 80, listeners: [{ routes }] }],
    }),
  );
}

function dropIn(name: string, text: string): void {
  mkdirSync(DROP_INS, { recursive: true });
  writeFileSync(`${DROP_INS}/${name}`, text);
}

function systemctl(...args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile("systemctl", args, { timeout: 3 * PATIENCE }, (error: ExecFileException | null, _stdout, stderr) => {
      if (error === null) resolve();
      else reject(new Error(`systemctl ${args.join(" ")}: ${stderr}`));
    });
  });
}

function shown(...names: readonly string[]): Readonly<Record<string, string | undefined>> {
  const text = execFileSync("systemctl", ["show", "tracegate", "-p", names.join(",")], { encoding: "utf8" });
  return Object.fromEntries(
    text
      .trim()
      .split("\n")
      .map((line) => line.split(/=(.*)/s)),
  );
}

function journal(): string {
  return execFileSync("journalctl", ["-u", "tracegate", "-o", "cat", "--no-pager", "-n", "200"], { encoding: "utf8" });
}

function isAlive(pid: string): boolean {
  return readdirSync("/proc").includes(pid);
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await after(POLL);
  }
}

/** The body of a response, over a connection of its own. Rejects if there is none, or the status is not 200. */
async function answer(path = "/"): Promise<string> {
  const request = get({ host: "127.0.0.1", port: 80, path, agent: false, signal: AbortSignal.timeout(PATIENCE) });
  const [response] = await once(request, "response");
  let text = "";
  for await (const part of response.setEncoding("utf8")) text += part;
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
  return text;
}

/** Clients that send one request after the other from now on, until `end`, which returns what failed. */
class Load {
  served = 0;
  readonly #failed: string[] = [];
  #ended = false;
  readonly #clients = Array.from({ length: CLIENTS }, () => this.#client());

  async end(): Promise<readonly string[]> {
    this.#ended = true;
    await Promise.all(this.#clients);
    return this.#failed;
  }

  async #client(): Promise<void> {
    while (!this.#ended) {
      await answer().then(
        () => {
          this.served++;
        },
        (error: unknown) => this.#failed.push(String(error)),
      );
      await after(PAUSE);
    }
  }
}

backend.listen(0, "127.0.0.1");
await once(backend, "listening");
for (const [name, run] of Object.entries(CASES)) {
  const begun = performance.now();
  try {
    await run();
    console.log(`ok: ${name} (${Math.round((performance.now() - begun) / 1000)} s)`);
  } catch (error) {
    console.log(`FAILED: ${name}`);
    console.log(String(error).replaceAll(/^/gm, "  "));
    console.log(journal().split("\n").slice(-15).join("\n").replaceAll(/^/gm, "  "));
    break;
  }
}
console.log("end");
process.exit();
