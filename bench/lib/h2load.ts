/** One run of h2load and the CPU time that the proxy spent on it. */
import { Child, cpuMicros } from "./proc.ts";
import type { Bench, RunningProxy } from "./types.ts";
import type { Sample } from "./wrk.ts";

export interface H2Load {
  readonly seconds: number;
  readonly connections: number;
  /** Requests in flight on each connection. */
  readonly streams: number;
  /** The proxy terminates TLS on its port. */
  readonly tls?: boolean;
  /** Default: `/`. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Path of a file to send as the body of a POST. */
  readonly body?: string;
}

/** Saturates the proxy over HTTP/2. Throws when a request failed, because errors are cheaper than responses. */
export async function measureH2(bench: Bench, proxy: RunningProxy, load: H2Load): Promise<Sample> {
  const before = cpuMicros(proxy.child.pid);
  const { seconds, requests } = await runH2load(bench, proxy, load, [`-D${load.seconds}`]);
  const spent = cpuMicros(proxy.child.pid) - before;
  return { cpuMicrosPerRequest: spent / requests, requestsPerSecond: requests / seconds };
}

/** Makes one request with a large body in one direction, with windows that never limit it. Returns seconds. */
export async function transferH2(bench: Bench, proxy: RunningProxy, load: Omit<H2Load, "seconds">): Promise<number> {
  return (await runH2load(bench, proxy, load, ["-n1"])).seconds;
}

const SECONDS: Readonly<Record<string, number>> = { us: 1e-6, ms: 1e-3, s: 1 };

interface Report {
  readonly requests: number;
  readonly seconds: number;
}

async function runH2load(
  bench: Bench,
  proxy: RunningProxy,
  { connections, streams, tls = false, path = "/", headers = {}, body }: Omit<H2Load, "seconds">,
  howMuch: readonly string[],
): Promise<Report> {
  const fields = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const data = body === undefined ? [] : ["-d", body];
  const url = `${tls ? "https" : "http"}://127.0.0.1:${proxy.port}${path}`;
  const command = ["h2load", "-t1", `-c${connections}`, `-m${streams}`, ...howMuch, ...fields, ...data, url];
  const child = new Child("h2load", command, { cpus: bench.cores.load, stdout: "pipe", folder: bench.folder });
  const output = await child.output();
  const numbers = (pattern: RegExp): number[] => pattern.exec(output)?.slice(1).map(Number) ?? [];
  const [, length = "0", unit = "s"] = /finished in ([\d.]+)(us|ms|s)/.exec(output) ?? [];
  const [done = 0, succeeded = 0, failed = 0] = numbers(/(\d+) done, (\d+) succeeded, (\d+) failed/);
  const [right = 0] = numbers(/status codes: (\d+) 2xx/);
  if (done === 0 || succeeded !== done || right < done || failed > 0)
    throw new Error(`${proxy.name}: ${done} requests, ${right} with status 2xx, ${failed} failed\n${output}`);
  return { requests: done, seconds: Number(length) * (SECONDS[unit] ?? 1) };
}
