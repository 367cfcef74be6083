import { setTimeout as delay } from "node:timers/promises";
import { residentMiB } from "../lib/proc.ts";
import { median } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { PROXIES, startAll, stopProxies } from "./compare.ts";

const SETTLE_MS = 1000;

interface Start {
  readonly milliseconds: number;
  readonly memoryMiB: number;
}

/** From exec to ready (tracegate: its readiness server; the others: their port), and memory one second later. */
export const startup: Row = {
  name: "startup",
  title: "time to start and memory of the empty process",
  async run(bench) {
    const starts: Record<string, Start[]> = {};
    const origin = await startOrigin(bench);
    for (let round = 0; round < bench.rounds; round++) {
      for (const peer of PROXIES) {
        const start = await startOnce(bench, peer, origin.port);
        if (start !== undefined) starts[peer.name] = [...(starts[peer.name] ?? []), start];
      }
    }
    await stopProxies([origin]);
    return { measures: [measureOf(starts)], samples: starts };
  },
};

async function startOnce(bench: Bench, peer: (typeof PROXIES)[number], originPort: number): Promise<Start | undefined> {
  const begin = performance.now();
  const [proxy] = await startAll(bench, [peer], { originPort, cpus: bench.cores.proxy, accessLog: false });
  if (proxy === undefined) return undefined;
  const milliseconds = performance.now() - begin;
  await delay(SETTLE_MS);
  const memoryMiB = residentMiB(proxy.child.pid);
  await proxy.child.stop();
  return { milliseconds, memoryMiB };
}

function measureOf(starts: Readonly<Record<string, readonly Start[]>>): Measure {
  const describe = (name: string): string => {
    const list = starts[name] ?? [];
    const time = median(list.map((start) => start.milliseconds));
    const memory = median(list.map((start) => start.memoryMiB));
    return list.length === 0 ? "" : `${number(time)} ms, ${number(memory)} MiB`;
  };
  const peers = Object.keys(starts).filter((name) => name !== "tracegate");
  return {
    measure: "time to ready, memory when empty",
    tracegate: describe("tracegate"),
    peers: peers.map((name) => `${name} ${describe(name)}`).join("; "),
  };
}
