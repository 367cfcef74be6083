/**
 * Fuzzes for a while: `npm run fuzz -- [target…] [--seconds 60] [--seed 1]`, all targets without a name.
 * Ends with status 1 at the first finding, which it prints with the seed that makes it.
 */
import { inspect, parseArgs } from "node:util";
import { playConnections } from "./explain/connections.ts";
import { playExplain } from "./explain/play.ts";
import { playGateway } from "./gateway/play.ts";
import { compare } from "./http1/differential.ts";
import { generateStream } from "./http1/generate.ts";
import { playFlow } from "./http2/flow.ts";
import { compareHpack } from "./http2/hpack.ts";

/** Tries what `seed` makes; returns what is wrong, to be printed. */
type Target = (seed: number) => object | undefined | Promise<object | undefined>;

const TARGETS: Readonly<Record<string, Target>> = {
  /** The parser of HTTP/1.1 against Node's. */
  http1: (seed) => {
    const stream = generateStream(seed);
    const { disagreement } = compare(stream);
    return disagreement && { ...disagreement, text: stream.toString("latin1"), hex: stream.toString("hex") };
  },
  /** HPACK against nghttp2. */
  hpack: compareHpack,
  /** Frames and flow control of HTTP/2 against a model. */
  flow: playFlow,
  /** Clients and backends of both versions through a gateway. */
  gateway: playGateway,
  /** Rehearsals against real requests. */
  explain: playExplain,
  /** Rehearsals against real connections without requests. */
  connections: playConnections,
};

function wholeNumber(text: string, option: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new Error(`--${option} must be a whole number, for example --${option} 60; it is ${text}`);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
  },
});
const deadline = performance.now() + wholeNumber(values.seconds, "seconds") * 1000;
const firstSeed = wholeNumber(values.seed, "seed");
const names = positionals.length > 0 ? positionals : Object.keys(TARGETS);
const targets = names.map((name) => {
  const run = TARGETS[name];
  if (run === undefined) throw new Error(`no target ${name}; the targets are ${Object.keys(TARGETS).join(", ")}`);
  return { name, run, seconds: 0, seeds: 0 };
});

// At least one seed, so that `--seconds 0 --seed S` runs again the one that failed.
do {
  // Next is the target that has had the least time: a seed of one takes as long as a hundred of another.
  const target = targets.reduce((least, each) => (each.seconds < least.seconds ? each : least));
  const seed = firstSeed + target.seeds;
  const start = performance.now();
  const finding = await target.run(seed);
  target.seconds += (performance.now() - start) / 1000;
  target.seeds += 1;
  if (finding !== undefined) {
    console.error(inspect(finding, { depth: null, maxStringLength: null, maxArrayLength: null }));
    console.error(
      `${target.name} failed with seed ${seed}; again: npm run fuzz -- ${target.name} --seconds 0 --seed ${seed}`,
    );
    process.exit(1);
  }
} while (performance.now() < deadline || targets.some(({ seeds }) => seeds === 0));
for (const { name, seeds, seconds } of targets) {
  console.log(`${name}: ${seeds} seeds from ${firstSeed} in ${seconds.toFixed(0)} s, no finding`);
}
// The gateway still listens.
process.exit();
