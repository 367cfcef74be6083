import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { answersOk } from "../lib/http.ts";
import { waitFor } from "../lib/ports.ts";
import { residentMiB } from "../lib/proc.ts";
import { median, percentile } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row } from "../lib/types.ts";
import { measure } from "../lib/wrk.ts";
import { startOrigin } from "../peers/origin.ts";
import { installPackage } from "../peers/package.ts";
import { type RunningTracegate, startTracegate } from "../peers/tracegate.ts";
import { stopProxies } from "./compare.ts";
import { manyRoutes } from "./routes.ts";

const CHECKOUT = fileURLToPath(new URL("../../", import.meta.url));
const FEW = 300;
const WORKERS = 2;
const CONNECTIONS = 40;
/** Duration of the load; only its second half counts. */
const SECONDS = 20;
const PERIOD_MS = 2000;
const SAMPLE_MS = 100;
/** Between the reloads of many routes. */
const PAUSE_MS = 3000;
const RELOADS = 5;

interface Load {
  readonly medianMiB: number;
  readonly maxMiB: number;
}

interface Many {
  readonly startMiB: number;
  /** Resident memory, read PAUSE_MS after each reload. */
  readonly reloadedMiB: readonly number[];
  /** From the change of the file to the first answer of its new route. */
  readonly visibleMs: readonly number[];
}

/** Resident memory with two workers, of the package and of a checkout. */
export const memory: Row = {
  name: "memory",
  title: "memory while reloading and with 10,000 routes; builds the package first",
  async run(bench) {
    const origin = await startOrigin(bench);
    const variants = { package: `${installPackage(bench)}/bin/tracegate`, checkout: `${CHECKOUT}bin/tracegate` };
    const measures: Measure[] = [];
    const samples: Record<string, unknown> = {};
    for (const [name, program] of Object.entries(variants)) {
      const still = await underLoad(bench, program, origin.port, false);
      const reloading = await underLoad(bench, program, origin.port, true);
      const many = await withManyRoutes(bench, program, origin.port);
      samples[name] = { still, reloading, many };
      measures.push(...measuresOf(name, still, reloading, many));
    }
    await stopProxies([origin]);
    return { measures, samples };
  },
};

function measuresOf(name: string, still: Load, reloading: Load, { startMiB, reloadedMiB, visibleMs }: Many): Measure[] {
  const memoryOf = median(reloadedMiB);
  return [
    {
      measure: `${name}: memory with a reload of ${FEW} routes every ${PERIOD_MS / 1000} s, at saturation`,
      tracegate: `${number(reloading.medianMiB)} MiB (max ${number(reloading.maxMiB)})`,
      peers: `without reloads ${number(still.medianMiB)} MiB (max ${number(still.maxMiB)})`,
      value: reloading.medianMiB / still.medianMiB,
      limits: { better: "less", must: 1.3, aim: 1.1 },
    },
    {
      measure: `${name}: memory with 10,000 routes after ${RELOADS} reloads`,
      tracegate: `${number(memoryOf)} MiB (max ${number(percentile(reloadedMiB, 1))})`,
      peers: `before them ${number(startMiB)} MiB`,
      value: memoryOf,
      unit: "MiB",
      limits: { better: "less", must: 260, aim: 180 },
    },
    {
      measure: `${name}: change of a file of 10,000 routes to the first answer, best of ${RELOADS}`,
      tracegate: `${number(Math.min(...visibleMs))} ms (median ${number(median(visibleMs))})`,
      peers: "",
      value: Math.min(...visibleMs),
      unit: "ms",
      limits: { better: "less", must: 1200, aim: 500 },
    },
  ];
}

async function underLoad(bench: Bench, program: string, originPort: number, reloading: boolean): Promise<Load> {
  const proxy = await start(bench, program, manyRoutes(originPort, FEW));
  const samples: number[] = [];
  let done = false;
  const sampler = (async () => {
    for (; !done; await delay(SAMPLE_MS)) samples.push(residentMiB(proxy.child.pid));
  })();
  const reloader = (async () => {
    for (let version = 1; reloading && !done; version++) {
      await delay(PERIOD_MS);
      await reload(proxy, manyRoutes(originPort, FEW), originPort, version);
    }
  })();
  const targets = [{ host: "host-1.bench.test", path: "/" }];
  await measure(bench, proxy, { seconds: SECONDS, connections: CONNECTIONS, targets });
  done = true;
  await Promise.all([sampler, reloader]);
  await stopProxies([proxy]);
  const settled = samples.slice(samples.length / 2);
  return { medianMiB: median(settled), maxMiB: percentile(settled, 1) };
}

async function withManyRoutes(bench: Bench, program: string, originPort: number): Promise<Many> {
  const routes = manyRoutes(originPort);
  const proxy = await start(bench, program, routes);
  await delay(PAUSE_MS);
  const startMiB = residentMiB(proxy.child.pid);
  const reloadedMiB: number[] = [];
  const visibleMs: number[] = [];
  for (let version = 1; version <= RELOADS; version++) {
    visibleMs.push(await reload(proxy, routes, originPort, version));
    await delay(PAUSE_MS);
    reloadedMiB.push(residentMiB(proxy.child.pid));
    bench.note(`reload ${version}: ${number(visibleMs.at(-1) ?? 0)} ms, ${number(reloadedMiB.at(-1) ?? 0)} MiB`);
  }
  await stopProxies([proxy]);
  return { startMiB, reloadedMiB, visibleMs };
}

function start(bench: Bench, program: string, routes: string): Promise<RunningTracegate> {
  return startTracegate(bench, { cpus: undefined, workers: WORKERS, accessLog: false, routes, program });
}

/** Adds a route on a host that only this version knows. Milliseconds until it answers. */
async function reload(proxy: RunningTracegate, routes: string, originPort: number, version: number): Promise<number> {
  const host = `version-${version}.bench.test`;
  const text = `${routes}  - hostnames: [${host}]\n    backends:\n    - host: 127.0.0.1:${originPort}\n`;
  const from = performance.now();
  await proxy.rewrite(text);
  await waitFor(proxy.child, `reload ${version}`, () => answersOk(proxy.port, "/", host));
  return performance.now() - from;
}
