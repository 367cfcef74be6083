import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { answersOk } from "../lib/http.ts";
import { waitFor } from "../lib/ports.ts";
import { Child, NODE } from "../lib/proc.ts";
import { percentile } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { onOneCore, type RunningTracegate, startTracegate } from "../peers/tracegate.ts";
import { stopProxies } from "./compare.ts";
import { HOSTS, hostName, manyRoutes } from "./routes.ts";

const SCRIPT = fileURLToPath(new URL("../load/open-loop.ts", import.meta.url));
const RATE = 1000;
/** Load before the first reload, for the comparison and so that the code is warm. */
const STEADY_MS = 3000;
/** The window stays open this long after a reload has become visible, because cleaning up takes time too. */
const TAIL_MS = 500;
const RELOADS = 3;

/** From when the file changed to TAIL_MS after the new route answered, in milliseconds since the epoch. */
interface Window {
  readonly from: number;
  readonly to: number;
  readonly visibleMs: number;
}

type Sample = readonly [due: number, latency: number];

/** A file of 10,000 routes is changed under 1,000 requests/s (open loop); only requests due around a reload count. */
export const reload: Row = {
  name: "reload",
  title: "reload of 10,000 routes under 1,000 requests/s",
  async run(bench) {
    const origin = await startOrigin(bench);
    const start = performance.now();
    const proxy = await startTracegate(bench, { ...onOneCore(bench), routes: manyRoutes(origin.port) });
    bench.note(`started with 10,000 routes in ${number(performance.now() - start)} ms`);
    const { samples, windows, steadyUntil } = await loadWithReloads(bench, proxy, origin.port);
    await stopProxies([proxy, origin]);
    const around = samples.filter(([due]) => windows.some(({ from, to }) => due >= from && due <= to));
    const steady = samples.filter(([due]) => due < steadyUntil && due > steadyUntil - STEADY_MS / 2);
    return { measures: measuresOf(samples, around, steady, windows), samples: { windows, around } };
  },
};

async function loadWithReloads(bench: Bench, proxy: RunningTracegate, originPort: number) {
  const hosts = join(bench.folder, "hosts");
  await writeFile(hosts, Array.from({ length: HOSTS }, (_, index) => hostName(index)).join("\n"));
  // Enough for the reloads at five seconds each; the generator is stopped when they are done.
  const seconds = STEADY_MS / 1000 + RELOADS * 10;
  const command = [NODE, SCRIPT, String(proxy.port), String(RATE), String(seconds), hosts];
  const client = new Child("open loop", command, { cpus: bench.cores.load, stdout: "pipe", folder: bench.folder });
  const output = client.output();
  await delay(STEADY_MS);
  const steadyUntil = Date.now();
  const windows: Window[] = [];
  for (let version = 1; version <= RELOADS; version++) {
    windows.push(await reloadOnce(proxy, originPort, version));
    bench.note(`reload ${version} visible after ${number(windows.at(-1)?.visibleMs ?? 0)} ms`);
    await delay(500);
  }
  client.process.stdin?.end();
  const { samples } = JSON.parse(await output) as { samples: Sample[] };
  return { samples, windows, steadyUntil };
}

/** The new file has one route more, on a host that only this version knows. */
async function reloadOnce(proxy: RunningTracegate, originPort: number, version: number): Promise<Window> {
  const host = `version-${version}.bench.test`;
  const added = `  - hostnames: [${host}]\n    backends:\n    - host: 127.0.0.1:${originPort}\n`;
  const text = manyRoutes(originPort) + added;
  const from = Date.now();
  await proxy.rewrite(text);
  await waitFor(proxy.child, `reload ${version}`, () => answersOk(proxy.port, "/", host));
  const visibleMs = Date.now() - from;
  await delay(TAIL_MS);
  return { from, to: Date.now(), visibleMs };
}

function measuresOf(
  all: readonly Sample[],
  around: readonly Sample[],
  steady: readonly Sample[],
  windows: readonly Window[],
): Measure[] {
  const failed = all.filter(([, latency]) => latency < 0).length;
  const latencies = (list: readonly Sample[]): number[] => list.map(([, latency]) => Math.abs(latency));
  const p99 = percentile(latencies(around), 0.99);
  const visible = windows.map((window) => window.visibleMs);
  return [
    {
      measure: `${RELOADS} reloads of 10,000 routes at ${RATE}/s: failed requests`,
      tracegate: `${failed} of ${all.length}`,
      peers: "",
      value: failed,
      limits: { better: "less", must: 0, aim: 0 },
    },
    {
      measure: "p99 of requests due during a reload",
      tracegate: `${number(p99)} ms (max ${number(percentile(latencies(around), 1))}), visible after ${number(Math.max(...visible))} ms`,
      peers: `before ${number(percentile(latencies(steady), 0.99))} ms`,
      value: p99,
      unit: "ms",
      limits: { better: "less", must: 50, aim: 20 },
    },
  ];
}
