import { Agent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type Ask, ask } from "../lib/http.ts";
import { percentile } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Measure, Row } from "../lib/types.ts";
import { measure } from "../lib/wrk.ts";
import { startOrigin } from "../peers/origin.ts";
import { oneRoute, onOneCore, type RunningTracegate, startTracegate } from "../peers/tracegate.ts";
import { stopProxies } from "./compare.ts";

/** One request every 20 ms, over all paths together. */
const PAUSE_MS = 20;

/** How fast the admin and stats servers answer while wrk saturates the worker, which shares their only core. */
export const admin: Row = {
  name: "admin",
  title: "admin latency under saturation",
  async run(bench) {
    const origin = await startOrigin(bench);
    const proxy = await startTracegate(bench, { ...onOneCore(bench), routes: oneRoute(origin.port) });
    const ended = new AbortController();
    const seconds = bench.rounds * bench.seconds;
    const [latencies] = await Promise.all([
      askInTurns(proxy, ended.signal),
      measure(bench, proxy, { seconds }).finally(() => ended.abort()),
    ]);
    await stopProxies([proxy, origin]);
    return { measures: Object.entries(latencies).map(([what, list]) => measureOf(what, list)), samples: latencies };
  },
};

async function askInTurns(proxy: RunningTracegate, ended: AbortSignal): Promise<Record<string, number[]>> {
  const agent = new Agent({ keepAlive: true });
  const questions: Readonly<Record<string, Ask>> = {
    "GET /config_dump": { port: proxy.adminPort, path: "/config_dump", agent },
    "POST /logging": { port: proxy.adminPort, path: "/logging", method: "POST", agent },
    "GET /metrics": { port: proxy.statsPort, path: "/metrics", agent },
  };
  const latencies: Record<string, number[]> = {};
  while (!ended.aborted) {
    for (const [what, question] of Object.entries(questions)) {
      const start = performance.now();
      const { status } = await ask(question);
      if (status !== 200) throw new Error(`${what}: status ${status}`);
      latencies[what] = [...(latencies[what] ?? []), performance.now() - start];
      await delay(PAUSE_MS);
    }
  }
  agent.destroy();
  return latencies;
}

function measureOf(what: string, latencies: readonly number[]): Measure {
  return {
    measure: `p99 of ${what} under saturation`,
    tracegate: `${number(percentile(latencies, 0.99))} ms (p50 ${number(percentile(latencies, 0.5))}, ${latencies.length} asked)`,
    peers: "",
    value: percentile(latencies, 0.99),
    unit: "ms",
    limits: { better: "less", must: 100, aim: 100 },
  };
}
