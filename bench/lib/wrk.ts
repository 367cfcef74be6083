/** One run of wrk and the CPU time that the proxy spent on it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Child, cpuMicros } from "./proc.ts";
import type { Bench, RunningProxy } from "./types.ts";

export interface Target {
  readonly host: string;
  readonly path: string;
  /** Further header fields. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Load {
  readonly seconds: number;
  readonly connections?: number;
  /** Requests taken in turn; absent = GET / with the proxy's address as host. */
  readonly targets?: readonly Target[];
  /** The proxy terminates TLS on its port. */
  readonly tls?: boolean;
}

export interface Sample {
  /** CPU time of the whole process tree divided by the number of responses. */
  readonly cpuMicrosPerRequest: number;
  readonly requestsPerSecond: number;
  /** Absent: h2load does not report it. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
}

interface WrkReport {
  readonly requests: number;
  readonly micros: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
}

const REPORT = `
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"micros":%d,"p50":%d,"p99":%d,"errors":%d}\\n', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
`;

/** Saturates the proxy over 64 keep-alive connections. Throws when a request failed, because errors are cheaper than responses. */
export async function measure(bench: Bench, proxy: RunningProxy, load: Load): Promise<Sample> {
  const before = cpuMicros(proxy.child.pid);
  const report = await runWrk(bench, proxy.port, load);
  const spent = cpuMicros(proxy.child.pid) - before;
  if (report.requests === 0 || report.errors > 0) {
    throw new Error(`${proxy.name}: ${report.errors} of ${report.requests} requests failed\n${proxy.child.logTail()}`);
  }
  return {
    cpuMicrosPerRequest: spent / report.requests,
    requestsPerSecond: report.requests / (report.micros / 1e6),
    p50Ms: report.p50 / 1000,
    p99Ms: report.p99 / 1000,
  };
}

async function runWrk(bench: Bench, port: number, load: Load): Promise<WrkReport> {
  const script = join(bench.folder, load.targets === undefined ? "report.lua" : `targets-${load.targets.length}.lua`);
  await writeFile(script, REPORT + requestScript(load.targets));
  const connections = String(load.connections ?? 64);
  const command = [
    "wrk",
    "-t1",
    `-c${connections}`,
    `-d${load.seconds}s`,
    "-s",
    script,
    `${load.tls ? "https" : "http"}://127.0.0.1:${port}/`,
  ];
  const wrk = new Child("wrk", command, { cpus: bench.cores.load, stdout: "pipe", folder: bench.folder });
  const output = await wrk.output();
  const line = output.split("\n").find((text) => text.startsWith("{"));
  if (line === undefined) throw new Error(`wrk printed no report: ${output}`);
  return JSON.parse(line) as WrkReport;
}

/** wrk runs Lua for each request only when there are several targets; the request texts are made beforehand. */
function requestScript(targets: readonly Target[] | undefined): string {
  if (targets === undefined) return "";
  const lines = targets.map(({ host, path, headers = {} }) => {
    const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\\r\\n`);
    return `"GET ${path} HTTP/1.1\\r\\nHost: ${host}\\r\\n${fields.join("")}\\r\\n"`;
  });
  return `local texts = {\n${lines.join(",\n")}\n}\nlocal i = 0
function request()
  i = i + 1
  if i > #texts then i = 1 end
  return texts[i]
end
`;
}
