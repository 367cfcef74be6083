import { makeCertificate } from "../lib/certificate.ts";
import type { H2Load } from "../lib/h2load.ts";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, CertificateFiles, Limits, Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { cpuOf, interleave, PROXIES, type Samples, startAll, stopProxies } from "./compare.ts";

interface Shape {
  readonly name: string;
  readonly load: Pick<H2Load, "connections" | "streams">;
  readonly tls: boolean;
  readonly limits: Readonly<Record<string, Limits>>;
}

const MULTIPLEXED: Readonly<Record<string, Limits>> = {
  envoy: { better: "less", must: 0.35, aim: 0.25 },
  nginx: { better: "less", must: 1.1, aim: 0.8 },
};

const SHAPES: readonly Shape[] = [
  { name: "h2c, 10 x 10", load: { connections: 10, streams: 10 }, tls: false, limits: MULTIPLEXED },
  {
    name: "h2c, 64 x 1",
    load: { connections: 64, streams: 1 },
    tls: false,
    limits: { envoy: { better: "less", must: 0.45, aim: 0.3 } },
  },
  { name: "h2 over TLS, 10 x 10", load: { connections: 10, streams: 10 }, tls: true, limits: MULTIPLEXED },
];

/** CPU per request of clients with HTTP/2, connections x streams, small body; HTTP/1.1 to the origin. */
export const h2: Row = {
  name: "h2",
  title: "CPU per request over HTTP/2",
  async run(bench) {
    const plain = await compare(bench, undefined);
    const encrypted = await compare(bench, makeCertificate(bench, "ECDSA P-256"));
    return {
      measures: [...plain.measures, ...encrypted.measures],
      samples: { ...plain.samples, ...encrypted.samples },
    };
  },
};

async function compare(
  bench: Bench,
  tls: CertificateFiles | undefined,
): Promise<{ measures: Measure[]; samples: Record<string, Samples> }> {
  const origin = await startOrigin(bench);
  const options = { originPort: origin.port, cpus: bench.cores.proxy, accessLog: false, protocol: "h2" } as const;
  // HAProxy wants certificate and key in one file.
  const peers = PROXIES.filter(({ name }) => tls === undefined || name !== "haproxy");
  const proxies = await startAll(bench, peers, { ...options, ...(tls && { tls }) });
  const measures: Measure[] = [];
  const all: Record<string, Samples> = {};
  for (const shape of SHAPES.filter((each) => each.tls === (tls !== undefined))) {
    bench.note(shape.name);
    const h2load = { ...shape.load, tls: shape.tls };
    const samples = await interleave(
      bench,
      proxies.map((proxy) => ({ name: proxy.name, proxy, h2load })),
    );
    measures.push(...measuresOf(shape, samples));
    all[shape.name] = samples;
  }
  await stopProxies([...proxies, origin]);
  return { measures, samples: all };
}

function measuresOf({ name, limits }: Shape, samples: Samples): Measure[] {
  const own = cpuOf(samples, "tracegate");
  const peers = Object.keys(samples).filter((peer) => peer !== "tracegate");
  return peers.map((peer) => {
    const theirs = cpuOf(samples, peer);
    const judged = limits[peer];
    return {
      measure: `CPU per request, ${name}, against ${peer}`,
      tracegate: `${number(median(own))} µs`,
      peers: `${number(median(theirs))} µs`,
      value: pairedRatio(own, theirs),
      ...(judged !== undefined && { limits: judged }),
    };
  });
}
