/**
 * npm run attacks [-- <name>…] [--seconds 2]
 * Runs one attack after the other on a gateway process, most of them over HTTP/2. Prints what each costs in memory and in the
 * latency of another client, and the error code that ends the attacker's connections. Exits with status 1 when a code is wrong
 * or the other client was not served.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { NodeClient } from "../e2e/http2/support.ts";
import { GatewayProcess } from "../helpers/gateway.ts";
import type { Outcome } from "./attacker.ts";
import { ATTACKS, type Attack } from "./attacks.ts";
import { inThread } from "./threads.ts";

/** Milliseconds between two requests of the neighbour, and between two looks at the memory. */
const PACE_MS = 5;
const BASELINE_MS = 1000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "2" } },
});
const milliseconds = Number(values.seconds) * 1000;
if (!(milliseconds > 0)) throw new Error(`--seconds must be a number above 0; it is ${values.seconds}`);
const chosen = positionals.length === 0 ? ATTACKS : positionals.map(attackNamed);

function attackNamed(name: string): Attack {
  const attack = ATTACKS.find((each) => each.name === name);
  if (attack === undefined)
    throw new Error(`no attack ${name}; the attacks are ${ATTACKS.map((each) => each.name).join(", ")}`);
  return attack;
}

interface Measured {
  /** Milliseconds of each request. */
  readonly latencies: number[];
  /** Largest resident set of the gateway, MiB. */
  readonly memory: number;
  readonly failures: string[];
}

/** Sends requests on a connection that attacks nothing, until `done`. */
async function measure(client: NodeClient, pid: number, done: () => boolean): Promise<Measured> {
  const latencies: number[] = [];
  const failures: string[] = [];
  let memory = 0;
  while (!done()) {
    const start = performance.now();
    const answer = await client.fetch().catch((error: Error) => error);
    if (answer instanceof Error) failures.push(answer.message);
    else if (answer.status !== 200) failures.push(`status ${answer.status}`);
    latencies.push(performance.now() - start);
    memory = Math.max(memory, residentMiB(pid));
    await delay(PACE_MS);
  }
  return { latencies, memory, failures };
}

/** Read from /proc; 0 on systems without it. */
function residentMiB(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

function quantile(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(1);
}

function latencyText({ latencies }: Measured): string {
  const sorted = latencies.toSorted((a, b) => a - b);
  return `${quantile(sorted, 0.5)} / ${quantile(sorted, 0.99)}`;
}

const backends = [await inThread<number>({ role: "backend" }), await inThread<number>({ role: "backend" })] as const;
// A backend that fills thousands of sockets at once is too busy for the neighbour's requests, so there are two.
const [other, large] = backends.map(({ message }) => [{ host: `127.0.0.1:${message}` }]);
const routes = [{ matches: [{ path: { exact: "/large" } }], backends: large }, { backends: other }];
await using gateway = await GatewayProcess.start({
  config: { logging: { level: "info,request=off" } },
  binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes }] }],
});
await using client = await NodeClient.connect(gateway.port());
const pid = gateway.process.pid ?? 0;
let wrong = 0;

// The first requests compile code.
let until = performance.now() + BASELINE_MS;
await measure(client, pid, () => performance.now() > until);
console.log(
  "attack                 | ends with          | connections | rounds each | MiB before, peak, after | ms p50 / p99 alone | under attack",
);
for (const attack of chosen) {
  until = performance.now() + BASELINE_MS;
  const before = await measure(client, pid, () => performance.now() > until);
  const start = residentMiB(pid);
  let outcomes: readonly Outcome[] | undefined;
  const attacking = inThread<Outcome[]>({ role: "attacker", port: gateway.port(), name: attack.name, milliseconds });
  void attacking.then(({ message }) => {
    outcomes = message;
  });
  const during = await measure(client, pid, () => outcomes !== undefined);
  const { message, worker } = await attacking;
  await worker.terminate();
  // A connection cut off when the time ran out shows nothing about how it would have ended; it counts only if no other did end.
  const complete = message.filter(({ goAway, timedOut }) => goAway !== "" || !timedOut);
  const ended = complete.length > 0 ? complete : message;
  const ends = [...new Set(ended.map(({ goAway }) => goAway))];
  const codes = [...new Set(ends.map((text) => text.split(":")[0] ?? ""))];
  const asExpected = codes.length === 1 && codes[0] === attack.ends;
  const memory = [start, during.memory, residentMiB(pid)].map((each) => each.toFixed(0)).join(", ");
  const rounds = Math.round(ended.reduce((sum, each) => sum + each.rounds, 0) / ended.length);
  const cells = [
    attack.name.padEnd(22),
    (codes.map((code) => code || "is served").join(", ") + (asExpected ? "" : " ✗")).padEnd(18),
    String(message.length).padStart(11),
    String(rounds).padStart(11),
    memory.padStart(23),
    latencyText(before).padStart(18),
    latencyText(during).padStart(12),
  ];
  console.log(cells.join(" | "));
  if (!asExpected) console.log(`  expected ${attack.ends || "no GOAWAY"}, got ${ends.join("; ") || "no GOAWAY"}`);
  for (const failure of new Set(during.failures)) console.log(`  the other client: ${failure}`);
  if (!asExpected || during.failures.length > 0) wrong++;
}
for (const { worker } of backends) await worker.terminate();
if (wrong > 0) {
  console.log(`${wrong} of ${chosen.length} attacks had another outcome than expected`);
  process.exitCode = 1;
}
