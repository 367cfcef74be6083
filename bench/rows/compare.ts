/** What rows share: starting proxies side by side and measuring them in turns. */
import { type H2Load, measureH2 } from "../lib/h2load.ts";
import type { Bench, Peer, ProxyOptions, RunningProxy } from "../lib/types.ts";
import { type Load, measure, type Sample } from "../lib/wrk.ts";
import { envoy } from "../peers/envoy.ts";
import { haproxy } from "../peers/haproxy.ts";
import { nginx } from "../peers/nginx.ts";
import { base, tracegate } from "../peers/tracegate.ts";

/** Tracegate first, then its base and the peers. */
export const PROXIES: readonly Peer[] = [tracegate, base, nginx, haproxy, envoy];

/** Samples by name of the proxy or variant, one for each round. */
export type Samples = Readonly<Record<string, readonly Sample[]>>;

/** Starts the peers that are installed; notes which are not. */
export async function startAll(bench: Bench, peers: readonly Peer[], options: ProxyOptions): Promise<RunningProxy[]> {
  const started: RunningProxy[] = [];
  for (const peer of peers) {
    const program = peer.find();
    if (program === undefined) bench.note(`${peer.name} is not installed, so it is left out (${peer.hint})`);
    else started.push(await peer.start(bench, program, options));
  }
  return started;
}

export interface Variant {
  readonly name: string;
  readonly proxy: RunningProxy;
  readonly load?: Partial<Load>;
  /** Loads the proxy with HTTP/2 instead. */
  readonly h2load?: Omit<H2Load, "seconds">;
  /** Done before each of its rounds; what it returns is done after. */
  readonly before?: () => Promise<() => void>;
}

/**
 * A gateway runs for weeks, so what counts is the code that its hot paths end up with. V8 has compiled them after 8 s at most: a request
 * over HTTP/2 and TLS costs 21 to 25 µs before that, and 17 afterwards.
 */
const WARM_UP_SECONDS = 8;

/**
 * A warm-up of each, then rounds A B C C B A …, so that other load on the machine affects all of them alike. In a fixed order, the first
 * of two copies of the same gateway cost 1.01 to 1.03 of the second.
 */
export async function interleave(bench: Bench, variants: readonly Variant[]): Promise<Samples> {
  const samples: Record<string, Sample[]> = {};
  for (const variant of variants) await warmUp(bench, variant);
  for (let round = 1; round <= bench.rounds; round++) {
    for (const variant of round % 2 === 1 ? variants : variants.toReversed()) {
      const sample = await oneRound(bench, variant, bench.seconds);
      bench.note(
        `round ${round} ${variant.name}: ${sample.cpuMicrosPerRequest.toFixed(2)} µs/request, ` +
          `${Math.round(sample.requestsPerSecond)} requests/s${sample.p99Ms === undefined ? "" : `, p99 ${sample.p99Ms.toFixed(2)} ms`}`,
      );
      samples[variant.name] = [...(samples[variant.name] ?? []), sample];
    }
  }
  return samples;
}

/** Load for as long as compiling takes. */
export async function warmUp(bench: Bench, variant: Variant): Promise<void> {
  await oneRound(bench, variant, WARM_UP_SECONDS);
}

async function oneRound(bench: Bench, variant: Variant, seconds: number): Promise<Sample> {
  const after = await variant.before?.();
  try {
    if (variant.h2load !== undefined) return await measureH2(bench, variant.proxy, { ...variant.h2load, seconds });
    return await measure(bench, variant.proxy, { ...variant.load, seconds });
  } finally {
    after?.();
  }
}

export function cpuOf(samples: Samples, name: string): number[] {
  return (samples[name] ?? []).map((sample) => sample.cpuMicrosPerRequest);
}

export async function stopProxies(proxies: readonly RunningProxy[]): Promise<void> {
  await Promise.all(proxies.map((proxy) => proxy.child.stop()));
}
