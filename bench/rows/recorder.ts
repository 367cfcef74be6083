import { median, pairedRatio } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { oneRoute, onOneCore, startTracegate } from "../peers/tracegate.ts";
import { cpuOf, interleave } from "./compare.ts";

/** Processes differ by a few percent, whatever they run: the ratio is that of several pairs. */
const PAIRS = 6;
const WAYS = ["on", "off"] as const;
const LOADS = {
  "HTTP/1.1": { load: { targets: [{ host: "bench.example", path: "/api/v1/users/42/cart?page=7" }] } },
  h2c: { h2load: { connections: 10, streams: 10, tls: false } },
};

/** CPU per request with the flight recorder and without, over HTTP/1.1 and h2c. */
export const recorder: Row = {
  name: "recorder",
  title: "flight recorder",
  async run(bench) {
    const origin = await startOrigin(bench);
    const pairs = await Promise.all(
      Array.from({ length: PAIRS }, async (_, pair) => ({
        pair,
        on: await startTracegate(bench, { ...onOneCore(bench), routes: oneRoute(origin.port, "h2") }),
        off: await startTracegate(bench, { ...onOneCore(bench), routes: oneRoute(origin.port, "h2"), recorder: false }),
      })),
    );
    const samples = await interleave(
      bench,
      pairs.flatMap(({ pair, ...ways }) =>
        Object.entries(LOADS).flatMap(([name, load]) =>
          // In every round, half of the pairs begin with each way: a machine that becomes faster favors neither.
          (pair % 2 === 0 ? WAYS : WAYS.toReversed()).map((way) => ({
            name: `${name} ${way} ${pair}`,
            proxy: ways[way],
            ...load,
          })),
        ),
      ),
    );
    await Promise.all([origin, ...pairs.flatMap(({ on, off }) => [on, off])].map(({ child }) => child.stop()));
    const measures = Object.keys(LOADS).map((name): Measure => {
      const [on = [], off = []] = WAYS.map((way) =>
        pairs.flatMap(({ pair }) => cpuOf(samples, `${name} ${way} ${pair}`)),
      );
      return {
        measure: `CPU per request with the recorder, ${name}`,
        tracegate: `${number(median(on))} µs`,
        peers: `off ${number(median(off))} µs`,
        value: pairedRatio(on, off),
        limits: { better: "less", must: 1.02, aim: 1.01 },
      };
    });
    return { measures, samples };
  },
};
