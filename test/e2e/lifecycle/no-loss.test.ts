import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { after, before, suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { BusyBackend } from "../../helpers/busy-backend.ts";
import { GatewayProcess, proxyTo } from "../../helpers/gateway.ts";
import { admin } from "../trace/support.ts";

/** Clients that send one request after the other on a connection that they keep. */
const BUSY_CLIENTS = 12;
/** Clients that keep their connection and pause between requests, so that it is idle most of the time. */
const PAUSING_CLIENTS = 12;
const MAX_PAUSE_MS = 100;
/** Clients that open a connection for every request. */
const FRESH_CLIENTS = 4;
const CLIENTS = BUSY_CLIENTS + PAUSING_CLIENTS + FRESH_CLIENTS;

/** The outcomes of the requests of all clients. */
interface Tally {
  answered: number;
  /** Clients that have ended because the port is closed. */
  refused: number;
  readonly lost: string[];
}

suite("a shutdown under load, with the default settings", () => {
  let backend: BusyBackend;

  before(async () => {
    backend = await BusyBackend.start();
  });
  after(() => backend[Symbol.dispose]());

  for (const [name, rounds, begin] of [
    ["SIGTERM", 2, async (gateway: GatewayProcess) => void gateway.process.kill("SIGTERM")],
    ["POST /quitquitquit", 1, async (gateway: GatewayProcess) => void (await admin(gateway).quit())],
  ] as const)
    for (let round = 1; round <= rounds; round++)
      test(`${name} loses no request, round ${round}`, async () => {
        await using gateway = await GatewayProcess.start({ ...proxyTo(backend.address), config: { workerThreads: 2 } });
        const port = gateway.port();
        const tally: Tally = { answered: 0, refused: 0, lost: [] };
        const clients: Promise<void>[] = [];
        for (let i = 0; i < BUSY_CLIENTS; i++) clients.push(client(port, keepAlive(), 0, tally));
        for (let i = 0; i < PAUSING_CLIENTS; i++) clients.push(client(port, keepAlive(), MAX_PAUSE_MS, tally));
        for (let i = 0; i < FRESH_CLIENTS; i++) clients.push(client(port, new Agent(), 0, tally));
        while (tally.answered < 500) await delay(5);
        await begin(gateway);
        await Promise.all(clients);
        assert.deepEqual(tally.lost, []);
        assert.equal(tally.refused, CLIENTS);
        assert.equal(await gateway.exited(), 0);
        assert.ok(!gateway.lines.some(({ level }) => level === "warn"), "nothing was cut");
      });
});

function keepAlive(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 });
}

/** Sends one request after the other, with pauses of random length, until connections are refused. */
async function client(port: number, agent: Agent, maxPause: number, tally: Tally): Promise<void> {
  for (;;) {
    const outcome = await exchange(port, agent);
    if (outcome === "refused") break;
    if (outcome === "complete") tally.answered++;
    else tally.lost.push(outcome);
    if (maxPause > 0) await delay(Math.random() * maxPause);
  }
  tally.refused++;
  agent.destroy();
}

/** Resolves with the body of the response, with `refused`, or with the error. */
function exchange(port: number, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const sent = request({ port, host: "127.0.0.1", agent, method: "POST" }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => {
        text += String(chunk);
      });
      answer.on("end", () => resolve(answer.statusCode === 200 ? text : `status ${answer.statusCode}: ${text}`));
      answer.on("error", (error) => resolve(`the answer broke off: ${error.message}`));
    });
    sent.on("error", (error: NodeJS.ErrnoException) =>
      resolve(error.code === "ECONNREFUSED" ? "refused" : `${error.code} ${error.message}`),
    );
    sent.end("hello");
  });
}
