import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, createServer, request } from "node:http";
import { createServer as createSocketServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { stringify } from "yaml";
import { freePorts } from "../../helpers/free-ports.ts";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { takeOver } from "../../helpers/take-over.ts";

/** Status and body, or the error. */
function get(options: object): Promise<string> {
  return new Promise((resolve) => {
    request({ host: "127.0.0.1", agent: false, ...options }, (response) => {
      response.setEncoding("utf8");
      let text = "";
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(`${response.statusCode} ${text}`));
      response.on("error", ({ message }) => resolve(message));
    })
      .on("error", ({ message }) => resolve(message))
      .end();
  });
}

/** A socket file on which no process listens. */
async function socketOfKilledProcess(folder: string): Promise<string> {
  mkdirSync(folder, { mode: 0o700 });
  const path = join(folder, "1.sock");
  const server = createSocketServer().listen(`${path}.bound`);
  await once(server, "listening");
  renameSync(`${path}.bound`, path);
  server.close();
  await once(server, "close");
  assert.ok(statSync(path).isSocket());
  return path;
}

test("another process takes over under load: no request fails, and the first one finishes what it has begun", async (t) => {
  const held: (() => void)[] = [];
  const backend = createServer((_request, response) => void held.push(() => response.end("late")));
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  t.after(() => backend.close());
  const address = backend.address();
  assert.ok(typeof address === "object" && address !== null);
  const [port = 0, admin = 0] = await freePorts(2);
  // A runtime folder of its own: other gateways of this user are not to be found.
  const runtime = await mkdtemp(join(tmpdir(), "tracegate-runtime-"));
  t.after(() => rm(runtime, { recursive: true }));
  const socketPath = join(runtime, "app.sock");
  const config = (body: string): object => ({
    config: { adminAddr: `127.0.0.1:${admin}`, workerThreads: 2 },
    binds: [
      {
        port,
        address: ["127.0.0.1", `unix:${socketPath}`],
        listeners: [
          {
            routes: [
              {
                name: "late",
                matches: [{ path: { exact: "/late" } }],
                backends: [{ host: `127.0.0.1:${address.port}` }],
              },
              { name: "now", policies: { directResponse: { status: 200, body } } },
            ],
          },
        ],
      },
    ],
  });
  const left = await socketOfKilledProcess(join(runtime, "tracegate"));
  await using gateway = await GatewayProcess.start(config("first"), { env: { XDG_RUNTIME_DIR: runtime } });
  const own = join(runtime, "tracegate", `${gateway.process.pid}.sock`);
  await gateway.until(() => statSync(own, { throwIfNoEntry: false }) !== undefined, "the socket for take-overs");
  assert.deepEqual([statSync(own).mode & 0o777, statSync(join(own, "..")).mode & 0o777], [0o600, 0o700]);
  assert.equal(statSync(left, { throwIfNoEntry: false }), undefined);

  const late = get({ port, path: "/late" });
  await gateway.until(() => held.length === 1, "the long request");
  const answers: string[] = [];
  let over = false;
  const clients = [false, false, true].map(async (keepAlive) => {
    const agent = new Agent({ keepAlive, maxSockets: 1 });
    while (!over) {
      answers.push(await get({ port, agent }));
      await delay(2);
    }
    agent.destroy();
  });

  // One that fails changes nothing: its configuration is not valid.
  await writeFile(join(gateway.folder, "bad.yaml"), "binds: 1\n");
  const failed = await takeOver({ file: join(gateway.folder, "bad.yaml") }, { XDG_RUNTIME_DIR: runtime });
  assert.ok("failure" in failed);
  assert.match(failed.failure, /keeps serving: .*bad\.yaml:1:8: error: binds/);
  assert.equal(await get({ port }), "200 first");

  const next = join(gateway.folder, "next.yaml");
  await writeFile(
    next,
    stringify({
      ...config("second"),
      config: { adminAddr: `127.0.0.1:${admin}`, statsAddr: "off", readinessAddr: "off", workerThreads: 3 },
    }),
  );
  const outcome = await takeOver({ file: next }, { XDG_RUNTIME_DIR: runtime });
  assert.ok("serves" in outcome, JSON.stringify(outcome));
  // Before the first one is disposed of: both write to the same pipe, for whose end that waits.
  using _second = { [Symbol.dispose]: () => process.kill(outcome.serves, "SIGKILL") };
  assert.equal(outcome.drains, gateway.process.pid);
  assert.equal(await get({ port }), "200 second");
  assert.equal(await get({ port: undefined, socketPath }), "200 second");
  const overview = (await (await fetch(`http://127.0.0.1:${admin}/overview`)).json()) as {
    readonly draining: boolean;
    readonly workers: readonly unknown[];
  };
  assert.deepEqual([overview.draining, overview.workers.length], [false, 3]);
  assert.equal(gateway.process.exitCode, null, "the long request is still in progress");
  for (const end of held) end();
  assert.equal(await late, "200 late");
  while (gateway.process.exitCode === null) await delay(10);
  assert.equal(gateway.process.exitCode, 0);
  over = true;
  await Promise.all(clients);
  assert.deepEqual([...new Set(answers)].sort(), ["200 first", "200 second"]);
  assert.equal(await get({ port: undefined, socketPath }), "200 second");
  while (readdirSync(join(runtime, "tracegate")).join() !== `${outcome.serves}.sock`) await delay(10);
});
