import { fileURLToPath } from "node:url";
import { type KeyKind, makeCertificate } from "../lib/certificate.ts";
import { Child, cpuMicros, NODE } from "../lib/proc.ts";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row, RunningProxy } from "../lib/types.ts";
import { nginx } from "../peers/nginx.ts";
import { startOrigin } from "../peers/origin.ts";
import { base, tracegate } from "../peers/tracegate.ts";
import { startAll, stopProxies } from "./compare.ts";

const SCRIPT = fileURLToPath(new URL("../load/handshakes.ts", import.meta.url));
const KEYS: readonly KeyKind[] = ["ECDSA P-256", "RSA 2048"];
const KINDS = ["full", "resumed"] as const;

/** CPU of one TLS 1.3 connection without requests: accept, handshake (X25519), tickets, close. */
export const handshakes: Row = {
  name: "handshakes",
  title: "TLS handshakes",
  async run(bench) {
    const origin = await startOrigin(bench);
    const measures: Measure[] = [];
    const samples: Record<string, number[]> = {};
    for (const key of KEYS) {
      const tls = makeCertificate(bench, key);
      const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false, tls };
      const proxies = await startAll(bench, [tracegate, base, nginx], options);
      for (const kind of KINDS) {
        const name = (proxy: string): string => `${key}, ${kind}, ${proxy}`;
        for (const proxy of proxies) await cpuPerHandshake(bench, proxy, kind);
        for (let round = 1; round <= bench.rounds; round++) {
          for (const proxy of proxies) {
            const micros = await cpuPerHandshake(bench, proxy, kind);
            bench.note(`round ${round} ${name(proxy.name)}: ${micros.toFixed(0)} µs`);
            samples[name(proxy.name)] = [...(samples[name(proxy.name)] ?? []), micros];
          }
        }
        for (const peer of proxies.slice(1)) {
          const [own, theirs] = [samples[name("tracegate")] ?? [], samples[name(peer.name)] ?? []];
          measures.push({
            measure: `${kind} handshakes per CPU second against ${peer.name}, ${key}`,
            tracegate: number(1e6 / median(own)),
            peers: number(1e6 / median(theirs)),
            value: pairedRatio(theirs, own),
            ...(peer.name === "nginx" && { limits: { better: "more", must: 0.7, aim: 0.9 } }),
          });
        }
      }
      await stopProxies(proxies);
    }
    await stopProxies([origin]);
    return { measures, samples };
  },
};

/** Microseconds. Throws when a handshake failed, or was of the other kind. */
async function cpuPerHandshake(bench: Bench, proxy: RunningProxy, kind: (typeof KINDS)[number]): Promise<number> {
  const before = cpuMicros(proxy.child.pid);
  const command = [NODE, SCRIPT, String(proxy.port), String(bench.seconds), kind];
  const client = new Child("handshakes", command, { cpus: bench.cores.load, stdout: "pipe", folder: bench.folder });
  const { handshakes, failed } = JSON.parse(await client.output()) as { handshakes: number; failed: number };
  if (handshakes === 0 || failed > 0)
    throw new Error(`${proxy.name}: ${failed} handshakes failed, ${handshakes} did not`);
  return (cpuMicros(proxy.child.pid) - before) / handshakes;
}
