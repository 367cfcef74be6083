/** Transfers of 1 GiB through proxies, one at a time: what the rows body, tcp and h2body share. */
import { setInterval } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort, waitForPort } from "../lib/ports.ts";
import { Child, cpuMicros, NODE, residentMiB } from "../lib/proc.ts";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Limits, Measure, Peer, Protocol, RowResult, RunningProxy } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { base, tracegate } from "../peers/tracegate.ts";
import { startAll, stopProxies } from "./compare.ts";

const SCRIPT = fileURLToPath(new URL("../load/body.ts", import.meta.url));
export const GIB = 2 ** 30;
/** How long the receiver pauses in the round that measures memory. */
const PAUSE_MS = 1000;

export type Direction = "down" | "up";

/** What is transferred, how, and which peers are compared. */
export interface Transfers {
  /** First words of the measures' names. */
  readonly what: string;
  readonly protocol: Protocol;
  readonly peer: Peer;
  /** Of the throughput divided by that of the peer. */
  readonly limits: Limits;
  /** Makes one transfer and returns its seconds; throws when it was not complete. `pauseMs`: how long the receiver pauses. */
  send(bench: Bench, proxy: RunningProxy, direction: Direction, pauseMs: number): Promise<number>;
}

interface Transfer {
  readonly gibPerSecond: number;
  readonly cpuSecondsPerGib: number;
  readonly grownMiB: number;
}

/** Down from nginx (sendfile) and up to a sink that counts. */
export async function compareTransfers(bench: Bench, transfers: Transfers): Promise<RowResult> {
  const down = await runDirection(bench, transfers, "down");
  const up = await runDirection(bench, transfers, "up");
  return { measures: [...down.measures, ...up.measures], samples: { down: down.samples, up: up.samples } };
}

async function runDirection(bench: Bench, transfers: Transfers, direction: Direction): Promise<RowResult> {
  const origin = direction === "down" ? await startOrigin(bench, GIB) : await startSink(bench);
  const { peer, protocol } = transfers;
  const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false, protocol };
  const proxies = await startAll(bench, [tracegate, base, peer], options);
  const samples: Record<string, Transfer[]> = {};
  for (let round = 0; round <= bench.rounds; round++) {
    for (const proxy of proxies) {
      // In round 0 the receiver pauses for a while, to measure memory; it is also the warm-up of the others.
      const transfer = await transferOnce(bench, proxy, transfers, direction, round === 0 ? PAUSE_MS : 0);
      bench.note(
        `${direction}, ${round === 0 ? "with pause" : `round ${round}`} ${proxy.name}: ${number(transfer.gibPerSecond)} GiB/s, ` +
          `${number(transfer.cpuSecondsPerGib)} s CPU per GiB, memory +${number(transfer.grownMiB)} MiB`,
      );
      samples[proxy.name] = [...(samples[proxy.name] ?? []), transfer];
    }
  }
  await stopProxies([...proxies, origin]);
  return { measures: measuresOf(transfers, direction, samples), samples };
}

async function startSink(bench: Bench): Promise<RunningProxy> {
  const port = await freePort();
  const command = [NODE, SCRIPT, "sink", String(port)];
  const child = new Child("sink", command, { cpus: bench.cores.origin, stdout: "ignore", folder: bench.folder });
  await waitForPort(port, child);
  return { name: "sink", port, child };
}

/** Over HTTP/1.1 or bare TCP, by a client that can pause. */
export async function sendByScript(
  bench: Bench,
  proxy: RunningProxy,
  direction: Direction,
  pauseMs: number,
): Promise<number> {
  const command = [NODE, SCRIPT, direction, String(proxy.port), String(GIB), String(pauseMs)];
  const client = new Child("body client", command, { cpus: bench.cores.load, stdout: "pipe", folder: bench.folder });
  const output = await client.output();
  const { status, bytes, seconds } = JSON.parse(output) as { status: number; bytes: number; seconds: number };
  const wanted = direction === "down" ? 200 : 204;
  if (status !== wanted || bytes !== GIB)
    throw new Error(`${proxy.name} ${direction}: status ${status}, ${bytes} bytes`);
  return seconds;
}

async function transferOnce(
  bench: Bench,
  proxy: RunningProxy,
  { send }: Transfers,
  direction: Direction,
  pauseMs: number,
): Promise<Transfer> {
  const { pid } = proxy.child;
  const before = { cpu: cpuMicros(pid), memory: residentMiB(pid) };
  const ended = new AbortController();
  const [peak, seconds] = await Promise.all([
    peakMemory(pid, ended.signal),
    send(bench, proxy, direction, pauseMs).finally(() => ended.abort()),
  ]);
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

function measuresOf(
  { what, peer, limits }: Transfers,
  direction: Direction,
  samples: Readonly<Record<string, readonly Transfer[]>>,
): Measure[] {
  const own = samples[tracegate.name] ?? [];
  const speeds = (list: readonly Transfer[]): number[] => list.slice(1).map((transfer) => transfer.gibPerSecond);
  const growth = (list: readonly Transfer[]): number => Math.max(...list.map((transfer) => transfer.grownMiB));
  const describe = (list: readonly Transfer[]): string => {
    const cpu = median(list.slice(1).map((transfer) => transfer.cpuSecondsPerGib));
    return `${number(median(speeds(list)))} GiB/s, ${number(cpu)} s CPU`;
  };
  const others = Object.entries(samples).filter(([name]) => name !== tracegate.name);
  const text = (show: (list: readonly Transfer[]) => string): string =>
    others.map(([name, list]) => `${name} ${show(list)}`).join("; ");
  return [
    {
      measure: `${what} ${direction}, throughput against ${peer.name}`,
      tracegate: describe(own),
      peers: text(describe),
      value: pairedRatio(speeds(own), speeds(samples[peer.name] ?? [])),
      limits,
    },
    {
      measure: `${what} ${direction}, growth of memory`,
      tracegate: `${number(growth(own))} MiB`,
      peers: text((list) => `${number(growth(list))} MiB`),
      value: growth(own),
      unit: "MiB",
      limits: { better: "less", must: 64, aim: 64 },
    },
  ];
}
