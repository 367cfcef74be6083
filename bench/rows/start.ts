import { cpuMicros, residentMiB } from "../lib/proc.ts";
import { median } from "../lib/stats.ts";
import { number } from "../lib/table.ts";
import type { Bench, Measure, Row } from "../lib/types.ts";
import { startOrigin } from "../peers/origin.ts";
import { helpOfPackage, installPackage, startEmptyNode, startPackage } from "../peers/package.ts";
import { PROXIES, startAll, stopProxies } from "./compare.ts";

/** Starts for each round of `--rounds`: one takes less than a second. */
const STARTS_PER_ROUND = 3;

interface Start {
  readonly milliseconds: number;
  /** Of all threads, user and system, up to the moment of readiness. */
  readonly cpuMs: number;
  /** Resident, of the process; pages that are shared with other processes count too. */
  readonly memoryMiB: number;
}

/** From exec to ready: the package's readiness server answers 200, the peers' port accepts. Memory and CPU at that moment. */
export const start: Row = {
  name: "start",
  title: "time to start, and memory of the process that has started; builds the package first",
  async run(bench) {
    const starts: Record<string, Start[]> = {};
    const help: number[] = [];
    const folder = installPackage(bench);
    const origin = await startOrigin(bench);
    const peers = PROXIES.filter(({ name }) => name !== "tracegate" && name !== "base");
    const variants = {
      package: () => startPackage(bench, folder),
      node: () => startEmptyNode(bench),
      ...Object.fromEntries(
        peers
          .filter((peer) => peer.find() !== undefined)
          .map((peer) => [
            peer.name,
            async () => {
              const options = { originPort: origin.port, cpus: undefined, accessLog: false };
              return (await startAll(bench, [peer], options))[0]?.child;
            },
          ]),
      ),
    };
    for (let i = 0; i < bench.rounds * STARTS_PER_ROUND; i++) {
      for (const [name, begin] of Object.entries(variants)) {
        const from = performance.now();
        const child = await begin();
        if (child === undefined) continue;
        const sample = {
          milliseconds: performance.now() - from,
          cpuMs: cpuMicros(child.pid) / 1000,
          memoryMiB: residentMiB(child.pid),
        };
        starts[name] = [...(starts[name] ?? []), sample];
        await child.stop();
      }
      const from = performance.now();
      await helpOfPackage(bench, folder);
      help.push(performance.now() - from);
    }
    await stopProxies([origin]);
    return { measures: measuresOf(bench, starts, help), samples: { starts, help } };
  },
};

/** The smallest sample is the cost of the program; larger ones include other work of the machine. */
function measuresOf(
  bench: Bench,
  starts: Readonly<Record<string, readonly Start[]>>,
  help: readonly number[],
): Measure[] {
  const line = (measure: string, unit: "ms" | "MiB", pick: (start: Start) => number): Measure => {
    const values = (name: string): number[] => (starts[name] ?? []).map(pick);
    const text = (name: string): string =>
      `${number(Math.min(...values(name)))} ${unit} (median ${number(median(values(name)))})`;
    const others = Object.keys(starts).filter((name) => name !== "package");
    return {
      measure,
      tracegate: text("package"),
      peers: others.map((name) => `${name} ${text(name)}`).join("; "),
      value: Math.min(...values("package")),
      unit,
    };
  };
  bench.note(`${help.length} starts of each`);
  return [
    {
      ...line("package with two workers: exec to ready", "ms", (start) => start.milliseconds),
      limits: { better: "less", must: 350, aim: 200 },
    },
    {
      ...line("its resident memory when ready", "MiB", (start) => start.memoryMiB),
      limits: { better: "less", must: 120, aim: 100 },
    },
    line("its CPU time when ready", "ms", (start) => start.cpuMs),
    {
      measure: "tgctl --help",
      tracegate: `${number(Math.min(...help))} ms (median ${number(median(help))})`,
      peers: "",
      value: Math.min(...help),
      unit: "ms",
      limits: { better: "less", must: 150, aim: 100 },
    },
  ];
}
