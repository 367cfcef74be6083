import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Limits, Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { cpuOf, interleave, PROXIES, type Samples, startAll, stopProxies } from "./compare.ts";

const LIMITS: Readonly<Record<string, Limits>> = {
  envoy: { better: "less", must: 0.52, aim: 0.45 },
  nginx: { better: "less", must: 1.3, aim: 1.15 },
};

/** CPU per request of one worker: 64 keep-alive connections, small body, metrics on, trace disarmed; then with access logs. */
export const cpu: Row = {
  name: "cpu",
  title: "CPU per request",
  async run(bench) {
    const quiet = await compare(bench, false);
    const logging = await compare(bench, true);
    return {
      measures: [...measuresOf(quiet, "", true), ...measuresOf(logging, ", access log on", false)],
      samples: { quiet, logging },
    };
  },
};

async function compare(bench: Bench, accessLog: boolean): Promise<Samples> {
  bench.note(accessLog ? "with access logs" : "without access logs");
  const origin = await startOrigin(bench);
  const proxies = await startAll(bench, PROXIES, { originPort: origin.port, cpus: bench.cores.proxy, accessLog });
  const samples = await interleave(
    bench,
    proxies.map((proxy) => ({ name: proxy.name, proxy })),
  );
  await stopProxies([...proxies, origin]);
  return samples;
}

function measuresOf(samples: Samples, suffix: string, judged: boolean): Measure[] {
  const own = cpuOf(samples, "tracegate");
  const peers = Object.keys(samples).filter((name) => name !== "tracegate");
  const ratios = peers.map((peer): Measure => {
    const limits = judged ? LIMITS[peer] : undefined;
    return {
      measure: `CPU per request against ${peer}${suffix}`,
      tracegate: micros(own),
      peers: micros(cpuOf(samples, peer)),
      value: pairedRatio(own, cpuOf(samples, peer)),
      ...(limits === undefined ? {} : { limits }),
    };
  });
  return [...ratios, speedMeasure(samples, peers, suffix)];
}

function speedMeasure(samples: Samples, peers: readonly string[], suffix: string): Measure {
  const speed = (name: string): string => {
    const list = samples[name] ?? [];
    const [rate, p50, p99] = (["requestsPerSecond", "p50Ms", "p99Ms"] as const).map((key) =>
      median(list.map((sample) => sample[key] ?? Number.NaN)),
    );
    return list.length === 0 ? "" : `${number(rate ?? 0)}/s, ${number(p50 ?? 0)} ms, ${number(p99 ?? 0)} ms`;
  };
  return {
    measure: `requests per second, p50, p99 at saturation${suffix}`,
    tracegate: speed("tracegate"),
    peers: peers.map((peer) => `${peer} ${speed(peer)}`).join("; "),
  };
}

function micros(values: readonly number[]): string {
  return values.length === 0 ? "" : `${number(median(values))} µs`;
}
