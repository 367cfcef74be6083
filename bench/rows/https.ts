import { makeCertificate } from "../lib/certificate.ts";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Limits, Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { cpuOf, interleave, PROXIES, startAll, stopProxies } from "./compare.ts";

const LIMITS: Readonly<Record<string, Limits>> = {
  envoy: { better: "less", must: 0.6, aim: 0.5 },
  nginx: { better: "less", must: 1.5, aim: 1.25 },
};

/** CPU per request inside TLS 1.3 (ECDSA P-256; AES-128-GCM in tracegate and Envoy, AES-256-GCM in nginx): 64 keep-alive connections, small body, plaintext to the origin. */
export const https: Row = {
  name: "https",
  title: "CPU per request over HTTPS",
  async run(bench) {
    const origin = await startOrigin(bench);
    const tls = makeCertificate(bench, "ECDSA P-256");
    const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false, tls };
    const proxies = await startAll(
      bench,
      PROXIES.filter(({ name }) => name !== "haproxy"),
      options,
    );
    const samples = await interleave(
      bench,
      proxies.map((proxy) => ({ name: proxy.name, proxy, load: { tls: true } })),
    );
    await stopProxies([...proxies, origin]);
    const own = cpuOf(samples, "tracegate");
    const peers = Object.keys(samples).filter((name) => name !== "tracegate");
    const measures = peers.map((peer): Measure => {
      const theirs = cpuOf(samples, peer);
      const limits = LIMITS[peer];
      return {
        measure: `CPU per HTTPS request against ${peer}`,
        tracegate: `${number(median(own))} µs`,
        peers: `${number(median(theirs))} µs`,
        value: pairedRatio(own, theirs),
        ...(limits === undefined ? {} : { limits }),
      };
    });
    return { measures, samples };
  },
};
