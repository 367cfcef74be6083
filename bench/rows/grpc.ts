import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort, waitForPort } from "../lib/ports.ts";
import { Child, findProgram } from "../lib/proc.ts";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row, RunningProxy } from "../lib/types.ts";
import { envoy } from "../peers/envoy.ts";
import { base, tracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave, startAll, stopProxies } from "./compare.ts";

/** A message of gRPC with its prefix: not compressed, 32 bytes. */
const MESSAGE = Buffer.concat([Buffer.from([0, 0, 0, 0, 32]), Buffer.alloc(32, "x")]);

/** CPU of one call: a small message each way and trailers, HTTP/2 with clients (10 connections x 10 calls) and origin. */
export const grpc: Row = {
  name: "grpc",
  title: "CPU per unary call of gRPC",
  async run(bench) {
    const origin = await startEcho(bench);
    if (origin === undefined) return { measures: [], samples: {} };
    const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false, protocol: "grpc" } as const;
    const proxies = await startAll(bench, [tracegate, base, envoy], options);
    const body = join(bench.folder, "message");
    await writeFile(body, MESSAGE);
    const headers = { "content-type": "application/grpc", te: "trailers" };
    const h2load = { connections: 10, streams: 10, path: "/bench.Echo/Call", headers, body };
    const samples = await interleave(
      bench,
      proxies.map((proxy) => ({ name: proxy.name, proxy, h2load })),
    );
    await stopProxies([...proxies, origin]);
    const own = cpuOf(samples, "tracegate");
    const measures = Object.keys(samples)
      .filter((name) => name !== "tracegate")
      .map((peer): Measure => {
        const theirs = cpuOf(samples, peer);
        return {
          measure: `CPU per unary gRPC call, HTTP/2 on both sides, against ${peer}`,
          tracegate: `${number(median(own))} µs`,
          peers: `${number(median(theirs))} µs`,
          value: pairedRatio(own, theirs),
          ...(peer === "envoy" && { limits: { better: "less", must: 0.35, aim: 0.15 } }),
        };
      });
    return { measures, samples };
  },
};

/** nghttpd, which sends the message back and adds a trailer. */
async function startEcho(bench: Bench): Promise<RunningProxy | undefined> {
  const program = findProgram("nghttpd");
  if (program === undefined) {
    bench.note("nghttpd is not here and the row is left out (apt-get install nghttp2-server)");
    return undefined;
  }
  const port = await freePort();
  const flags = ["--no-tls", "--echo-upload", "--trailer=grpc-status: 0", "--address=127.0.0.1"];
  const command = [program, ...flags, String(port)];
  const child = new Child("echo", command, { cpus: bench.cores.origin, stdout: "ignore", folder: bench.folder });
  await waitForPort(port, child);
  return { name: "echo", port, child };
}
