/**
 * npm run soak -- recorder [--minutes N]
 * One rejected request, then 5,000 requests a second for a minute, of which some fail, at a gateway process with one worker. The ring turns
 * 30 times a minute; the rejected request must be found by its id and as an error, with what decided. Prints how long finding it takes.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { RecordAnswer } from "../../src/recorder/records.ts";
import { GatewayProcess } from "../helpers/gateway.ts";
import { PipeliningClient } from "../helpers/pipelining-client.ts";
import { RawPeer } from "../helpers/raw-peer.ts";

const RATE = 5000;
const CONNECTIONS = 8;
/** Milliseconds between batches. */
const TICK = 10;
/** Slots of the ring: it turns every two seconds. */
const SLOTS = 10_000;
const SLOT_BYTES = 256;
/** One of so many requests fails: 100 a second, of which 20 are kept. */
const FAILING = 50;
/** Requests without a response at which the machine is too slow for the rate. */
const MOST_WAITING = 2 * RATE;
const LOOKUPS = 20;
const ID = "rare-403";

/** True: the request was found. */
export async function soakRecorder(minutes: number): Promise<boolean> {
  await using gateway = await GatewayProcess.start(configuration());
  await RawPeer.ask(gateway.port(), `GET /admin HTTP/1.1\r\nHost: a.test\r\nX-Request-Id: ${ID}\r\n\r\n`);
  const sent = await flood(gateway, minutes * 60_000);
  const times: number[] = [];
  let byId: RecordAnswer | undefined;
  for (let i = 0; i < LOOKUPS; i++) {
    const start = performance.now();
    byId = await recordsOf(gateway, `/${ID}`);
    times.push(performance.now() - start);
  }
  const where = encodeURIComponent("response.code == 403");
  const byStatus = await recordsOf(gateway, `?where=${where}`);
  const errors = await recordsOf(gateway, "?errors=true&limit=10000");
  const [found] = byId?.records ?? [];
  times.sort((a, b) => a - b);
  const right = found?.status === 403 && found.decider?.policy === "authorization" && byStatus.records.length === 1;
  const kept = errors.records.filter((record) => record.kept === true);
  process.stdout.write(
    [
      `${sent} requests in ${minutes} min, the ring has turned ${(sent / SLOTS).toFixed(1)} times`,
      `records of all requests since ${byId?.completeSince}, of those that matter since ${byId?.keptSince}`,
      `failures: ${kept.length} kept, ${kept.reduce((sum, { leftOut = 0 }) => sum + leftOut, 0)} counted by them`,
      `the rejected request of ${found?.time}: ${right ? "found by its id, and by its status" : "NOT found"}`,
      `look-up by id over HTTP: median ${times[LOOKUPS / 2]?.toFixed(1)} ms, at most ${times.at(-1)?.toFixed(1)} ms`,
      "",
    ].join("\n"),
  );
  return right;
}

/** Sends requests at `RATE`, however fast the responses are. Resolves with how many, once all have been answered. */
async function flood(gateway: GatewayProcess, ms: number): Promise<number> {
  using client = await PipeliningClient.connect(gateway.port(), CONNECTIONS);
  const start = performance.now();
  let sent = 0;
  for (let elapsed = 0; elapsed < ms; elapsed = performance.now() - start) {
    const due = Math.floor((elapsed * RATE) / 1000) - sent;
    for (let left = due; left > 0; left -= due / CONNECTIONS) {
      const batch = Math.ceil(Math.min(left, due / CONNECTIONS));
      client.send(Array.from({ length: batch }, () => pathOf(sent++)));
    }
    if (sent - client.answered > MOST_WAITING)
      throw new Error(`the machine is too slow: ${client.answered} responses to ${sent} requests at ${RATE} a second`);
    await delay(TICK);
  }
  await client.until(sent);
  return sent;
}

function pathOf(number: number): string {
  return number % FAILING === 0 ? "/failing" : `/page/${number}`;
}

async function recordsOf(gateway: GatewayProcess, query: string): Promise<RecordAnswer> {
  const response = await fetch(`${gateway.url("admin")}/requests${query}`);
  return (await response.json()) as RecordAnswer;
}

function configuration(): object {
  const routes = [
    {
      name: "admin",
      matches: [{ path: { exact: "/admin" } }],
      policies: { authorization: { rules: [{ deny: "true" }] }, directResponse: { status: 200 } },
    },
    {
      name: "failing",
      matches: [{ path: { exact: "/failing" } }],
      policies: { directResponse: { status: 503, body: "" } },
    },
    { name: "all", policies: { directResponse: { status: 200, body: "" } } },
  ];
  return {
    config: { recorder: { recent: SLOTS * SLOT_BYTES }, logging: { level: "info,request=off" } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  };
}
