import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
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

const PATH = "/bench.Service/Call";

/** CPU of one call: a small message each way and trailers, HTTP/2 with clients (10 connections x 10 calls) and origin. */
export const grpc: Row = {
  name: "grpc",
  title: "CPU per unary call of gRPC",
  async run(bench) {
    const origin = await startOrigin(bench);
    if (origin === undefined) return { measures: [], samples: {} };
    const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false, protocol: "grpc" } as const;
    const proxies = await startAll(bench, [tracegate, base, envoy], options);
    const body = join(bench.folder, "message");
    await writeFile(body, MESSAGE);
    const headers = { "content-type": "application/grpc", te: "trailers" };
    const h2load = { connections: 10, streams: 10, path: PATH, headers, body };
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

/** nghttpd, which answers with the message from a file and adds a trailer: to send a body back it would write it to a file first. */
async function startOrigin(bench: Bench): Promise<RunningProxy | undefined> {
  const program = findProgram("nghttpd");
  if (program === undefined) {
    bench.note("nghttpd is not installed, so the row is left out (apt-get install nghttp2-server)");
    return undefined;
  }
  const port = await freePort();
  const folder = join(bench.folder, "grpc");
  await mkdir(join(folder, dirname(PATH)), { recursive: true });
  await writeFile(join(folder, PATH), MESSAGE);
  const flags = ["--no-tls", `--htdocs=${folder}`, "--trailer=grpc-status: 0", "--address=127.0.0.1"];
  const command = [program, ...flags, String(port)];
  const child = new Child("origin", command, { cpus: bench.cores.origin, stdout: "ignore", folder: bench.folder });
  await waitForPort(port, child);
  return { name: "origin", port, child };
}
