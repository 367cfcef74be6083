import { setInterval } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort, waitForPort } from "../lib/ports.ts";
import { Child, cpuMicros, NODE, residentMiB } from "../lib/proc.ts";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row, RunningProxy } from "../lib/types.ts";
import { nginx } from "../peers/nginx.ts";
import { startOrigin } from "../peers/origin.ts";
import { tracegate } from "../peers/tracegate.ts";
import { startAll, stopProxies } from "./compare.ts";

const SCRIPT = fileURLToPath(new URL("../load/body.ts", import.meta.url));
const GIB = 2 ** 30;
/** How long the receiver stands still in the round that looks at memory. */
const PAUSE_MS = 1000;

type Direction = "down" | "up";

interface Transfer {
  readonly gibPerSecond: number;
  readonly cpuSecondsPerGib: number;
  readonly grownMiB: number;
}

/** A body of 1 GiB down (nginx, sendfile) and up (a sink that counts), one transfer at a time. */
export const body: Row = {
  name: "body",
  title: "a body of 1 GiB each way",
  async run(bench) {
    const down = await runDirection(bench, "down");
    const up = await runDirection(bench, "up");
    return { measures: [...down.measures, ...up.measures], samples: { down: down.transfers, up: up.transfers } };
  },
};

async function runDirection(bench: Bench, direction: Direction): Promise<{ measures: Measure[]; transfers: unknown }> {
  const origin = direction === "down" ? await startOrigin(bench, GIB) : await startSink(bench);
  const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false };
  const proxies = await startAll(bench, [tracegate, nginx], options);
  const transfers: Record<string, Transfer[]> = {};
  for (let round = 0; round <= bench.rounds; round++) {
    for (const proxy of proxies) {
      // Round 0 has a receiver that stands still for a while: it shows memory, and warms up for the others.
      const transfer = await transferOnce(bench, proxy, direction, round === 0 ? PAUSE_MS : 0);
      bench.note(
        `${direction}, ${round === 0 ? "with pause" : `round ${round}`} ${proxy.name}: ${number(transfer.gibPerSecond)} GiB/s, ` +
          `${number(transfer.cpuSecondsPerGib)} s CPU per GiB, memory +${number(transfer.grownMiB)} MiB`,
      );
      transfers[proxy.name] = [...(transfers[proxy.name] ?? []), transfer];
    }
  }
  await stopProxies([...proxies, origin]);
  return { measures: measuresOf(direction, transfers), transfers };
}

async function startSink(bench: Bench): Promise<RunningProxy> {
  const port = await freePort();
  const command = [NODE, SCRIPT, "sink", String(port)];
  const child = new Child("sink", command, { cpus: bench.cores.origin, stdout: "ignore", folder: bench.folder });
  await waitForPort(port, child);
  return { name: "sink", port, child };
}

async function transferOnce(
  bench: Bench,
  proxy: RunningProxy,
  direction: Direction,
  pauseMs: number,
): Promise<Transfer> {
  const { pid } = proxy.child;
  const command = [NODE, SCRIPT, direction, String(proxy.port), String(GIB), String(pauseMs)];
  const before = { cpu: cpuMicros(pid), memory: residentMiB(pid) };
  const client = new Child("body client", command, { cpus: bench.cores.load, stdout: "pipe", folder: bench.folder });
  const ended = new AbortController();
  const [peak, output] = await Promise.all([
    peakMemory(pid, ended.signal),
    client.output().finally(() => ended.abort()),
  ]);
  const { status, bytes, seconds } = JSON.parse(output) as { status: number; bytes: number; seconds: number };
  const wanted = direction === "down" ? 200 : 204;
  if (status !== wanted || bytes !== GIB)
    throw new Error(`${proxy.name} ${direction}: status ${status}, ${bytes} bytes`);
  return {
    gibPerSecond: 1 / seconds,
    cpuSecondsPerGib: (cpuMicros(pid) - before.cpu) / 1e6,
    grownMiB: Math.max(0, peak - before.memory),
  };
}

/** The largest resident memory seen, looking every 20 ms. */
async function peakMemory(pid: number, ended: AbortSignal): Promise<number> {
  let peak = residentMiB(pid);
  try {
    for await (const _ of setInterval(20, undefined, { signal: ended })) peak = Math.max(peak, residentMiB(pid));
  } catch (error) {
    if (!ended.aborted) throw error;
  }
  return peak;
}

function measuresOf(direction: Direction, transfers: Readonly<Record<string, readonly Transfer[]>>): Measure[] {
  const own = transfers[tracegate.name] ?? [];
  const peer = transfers[nginx.name] ?? [];
  const speeds = (list: readonly Transfer[]): number[] => list.slice(1).map((transfer) => transfer.gibPerSecond);
  const growth = (list: readonly Transfer[]): number => Math.max(...list.map((transfer) => transfer.grownMiB));
  const describe = (list: readonly Transfer[]): string => {
    const cpu = median(list.slice(1).map((transfer) => transfer.cpuSecondsPerGib));
    return `${number(median(speeds(list)))} GiB/s, ${number(cpu)} s CPU`;
  };
  return [
    {
      measure: `1 GiB ${direction}, throughput`,
      tracegate: own.length === 0 ? "" : describe(own),
      peers: `nginx ${describe(peer)}`,
      value: pairedRatio(speeds(own), speeds(peer)),
      limits: { better: "more", must: 0.7, aim: 0.9 },
    },
    {
      measure: `1 GiB ${direction}, growth of memory`,
      tracegate: own.length === 0 ? "" : `${number(growth(own))} MiB`,
      peers: `nginx ${number(growth(peer))} MiB`,
      value: growth(own),
      unit: "MiB",
      limits: { better: "less", must: 64, aim: 64 },
    },
  ];
}
