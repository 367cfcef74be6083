import { makeCertificate } from "../lib/certificate.ts";
import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { oneRoute, onOneCore, type RunningTracegate, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave, type Samples, stopProxies, type Variant } from "./compare.ts";

/** Processes differ by a few percent, whatever they run: the ratio is that of several pairs. */
const PAIRS = 6;
const WAYS = ["on", "off"] as const;
const TARGETS = [{ host: "bench.example", path: "/api/v1/users/42/cart?page=7" }];
/** What loads the gateways without TLS, and those with it. */
const LOADS = {
  plain: {
    "HTTP/1.1": { load: { targets: TARGETS } },
    h2c: { h2load: { connections: 10, streams: 10, tls: false } },
  },
  tls: { HTTPS: { load: { targets: TARGETS, tls: true } } },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Pick<Variant, "load" | "h2load">>>>>;

type Pair = Readonly<Record<(typeof WAYS)[number], RunningTracegate>>;

/** CPU per request with the flight recorder and without, over HTTP/1.1, h2c and HTTPS. */
export const recorder: Row = {
  name: "recorder",
  title: "flight recorder",
  async run(bench) {
    const origin = await startOrigin(bench);
    const tls = makeCertificate(bench, "ECDSA P-256");
    const start = (on: boolean, secure: boolean): Promise<RunningTracegate> =>
      startTracegate(bench, {
        ...onOneCore(bench),
        routes: oneRoute(origin.port, "h2"),
        recorder: on,
        ...(secure && { tls }),
      });
    const samples: Record<string, Samples> = {};
    const measures: Measure[] = [];
    for (const [kind, loads] of Object.entries(LOADS)) {
      const pairs: Pair[] = [];
      for (let pair = 0; pair < PAIRS; pair++)
        pairs.push({ on: await start(true, kind === "tls"), off: await start(false, kind === "tls") });
      const taken = await measured(bench, pairs, loads);
      samples[kind] = taken;
      measures.push(...Object.keys(loads).map((name) => measureOf(name, taken)));
      await stopProxies(pairs.flatMap(({ on, off }) => [on, off]));
    }
    await stopProxies([origin]);
    return { measures, samples };
  },
};

function measured(bench: Bench, pairs: readonly Pair[], loads: Readonly<Record<string, object>>): Promise<Samples> {
  const variants = pairs.flatMap((pair, index) =>
    Object.entries(loads).flatMap(([name, load]) =>
      // In every round, half of the pairs begin with each way: a machine that becomes faster favors neither.
      (index % 2 === 0 ? WAYS : WAYS.toReversed()).map(
        (way): Variant => ({
          name: `${name} ${way} ${index}`,
          proxy: pair[way],
          ...load,
        }),
      ),
    ),
  );
  return interleave(bench, variants);
}

function measureOf(name: string, samples: Samples): Measure {
  const [on = [], off = []] = WAYS.map((way) =>
    Array.from({ length: PAIRS }, (_, index) => cpuOf(samples, `${name} ${way} ${index}`)).flat(),
  );
  return {
    measure: `CPU per request with the recorder, ${name}`,
    tracegate: `${number(median(on))} µs`,
    peers: `off ${number(median(off))} µs`,
    value: pairedRatio(on, off),
    limits: { better: "less", must: 1.02, aim: 1.01 },
  };
}
