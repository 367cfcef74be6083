import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { NODE } from "../lib/proc.ts";
import { number } from "../lib/table.ts";
import type { Measure, Row } from "../lib/types.ts";

const PROGRAM = fileURLToPath(new URL("../micro/impact.ts", import.meta.url));
const LIMITS = { better: "more", must: 50_000, aim: 100_000 } as const;

/** How many sampled requests the configuration before a change and the one after decide in a second of CPU time. */
export const impact: Row = {
  name: "impact",
  title: "impact of a change",
  async run({ rounds }) {
    const { stdout } = await promisify(execFile)(NODE, [PROGRAM, String(rounds), "--json"]);
    const micros = JSON.parse(stdout) as Readonly<Record<string, number>>;
    const measures = Object.entries(micros).map(([name, each]): Measure => {
      const measure = `pairs of decisions per second and core, 1,000 routes, ${name}`;
      const measured = { measure, tracegate: `${number(each)} µs for a pair`, peers: "" };
      return name === "plain" ? { ...measured, value: 1e6 / each, limits: LIMITS } : measured;
    });
    return { measures, samples: micros };
  },
};
