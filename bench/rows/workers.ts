import { median } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { oneRoute, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave, type Samples, stopProxies } from "./compare.ts";

const NAMES = ["one worker", "two workers"] as const;

/** Requests per second of two workers against one, both on the same two cores. Needs four cores: load and origin use two. */
export const workers: Row = {
  name: "workers",
  title: "two workers against one",
  async run(bench) {
    const enough = bench.cores.proxyPair !== undefined;
    if (!enough)
      bench.note(`${bench.cores.count} cores: load, origin and two workers share them, the ratio shows nothing`);
    const samples = await compareWorkers(bench);
    const [one, two] = NAMES.map((name) => median((samples[name] ?? []).map((sample) => sample.requestsPerSecond)));
    const [cpuOne, cpuTwo] = NAMES.map((name) => median(cpuOf(samples, name)));
    const measure = {
      measure: "requests per second of two workers",
      tracegate: `${number(two ?? 0)}/s, ${number(cpuTwo ?? 0)} µs CPU`,
      peers: `one worker ${number(one ?? 0)}/s, ${number(cpuOne ?? 0)} µs CPU`,
      value: (two ?? 0) / (one ?? 1),
      limits: { better: "more", must: 1.8, aim: 1.8 },
      ...(enough ? {} : { verdict: `not shown: needs 4 cores, has ${bench.cores.count}` }),
    } as const;
    return { measures: [measure], samples };
  },
};

async function compareWorkers(bench: Bench): Promise<Samples> {
  const origin = await startOrigin(bench);
  const options = { cpus: bench.cores.proxyPair, accessLog: false, routes: oneRoute(origin.port) };
  const one = await startTracegate(bench, { ...options, workers: 1 });
  const two = await startTracegate(bench, { ...options, workers: 2 });
  // 256 connections: the system spreads them over the workers by hash, and few would be spread unevenly.
  const load = { connections: 256 };
  const samples = await interleave(bench, [
    { name: "one worker", proxy: one, load },
    { name: "two workers", proxy: two, load },
  ]);
  await stopProxies([one, two, origin]);
  return samples;
}
