import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Child, NODE, residentMiB } from "../lib/proc.ts";
import { number } from "../lib/table.ts";
import type { Bench, Limits, Row, RowResult, RunningProxy } from "../lib/types.ts";
import { envoy } from "../peers/envoy.ts";
import { nginx } from "../peers/nginx.ts";
import { startOrigin } from "../peers/origin.ts";
import { tracegate } from "../peers/tracegate.ts";
import { startAll, stopProxies, warmUp } from "./compare.ts";

const SCRIPT = fileURLToPath(new URL("../load/idle.ts", import.meta.url));
const CONNECTIONS = 10_000;
/** Time for memory to settle before it is read. */
const SETTLE_MS = 3000;

/** Resident memory that 10,000 idle keep-alive connections add, after one request on each. */
export const idle: Row = {
  name: "idle",
  title: "10,000 idle connections",
  run: (bench) => compareIdle(bench, "http", "10,000 idle connections", { better: "less", must: 120, aim: 60 }),
};

/** The same with HTTP/2, without TLS. */
export const h2idle: Row = {
  name: "h2idle",
  title: "10,000 idle connections of HTTP/2",
  run: (bench) => compareIdle(bench, "h2", "10,000 idle h2 connections", { better: "less", must: 100, aim: 60 }),
};

async function compareIdle(bench: Bench, protocol: "http" | "h2", what: string, limits: Limits): Promise<RowResult> {
  const origin = await startOrigin(bench);
  const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false, protocol };
  const proxies = await startAll(bench, [tracegate, nginx, envoy], options);
  const grown: Record<string, number> = {};
  for (const proxy of proxies) {
    grown[proxy.name] = await growth(bench, proxy, protocol);
    bench.note(`${proxy.name}: ${number(grown[proxy.name] ?? 0)} MiB`);
  }
  await stopProxies([...proxies, origin]);
  const { tracegate: own, ...peers } = grown;
  const measure = {
    measure: `memory of ${what}`,
    tracegate: own === undefined ? "" : `${number(own)} MiB`,
    peers: Object.entries(peers)
      .map(([name, size]) => `${name} ${number(size)} MiB`)
      .join("; "),
    value: own ?? Number.NaN,
    unit: "MiB",
    limits,
  } as const;
  return { measures: [measure], samples: grown };
}

async function growth(bench: Bench, proxy: RunningProxy, protocol: string): Promise<number> {
  // Else the growth would include what V8 takes to compile the hot paths, which happens once: up to 20 MiB.
  const h2load = protocol === "h2" ? { h2load: { connections: 10, streams: 10 } } : {};
  await warmUp(bench, { name: proxy.name, proxy, ...h2load });
  await delay(SETTLE_MS);
  const empty = residentMiB(proxy.child.pid);
  const command = [NODE, SCRIPT, String(proxy.port), String(CONNECTIONS), protocol];
  const client = new Child("idle client", command, { cpus: bench.cores.load, stdout: "pipe", folder: bench.folder });
  const { stdin, stdout } = client.process;
  if (stdin === null || stdout === null) throw new Error("the idle client has no pipes");
  const lines = createInterface({ input: stdout });
  await once(lines, "line", { signal: AbortSignal.timeout(60_000) });
  await delay(SETTLE_MS);
  const full = residentMiB(proxy.child.pid);
  const answer = once(lines, "line", { signal: AbortSignal.timeout(10_000) });
  stdin.write("\n");
  const { open, failed } = JSON.parse(String((await answer)[0])) as { open: number; failed: number };
  if (open !== CONNECTIONS)
    throw new Error(`${proxy.name}: ${open} of ${CONNECTIONS} connections open, ${failed} failed`);
  await client.stop();
  return full - empty;
}
