/**
 * npm run bench [-- <row>… --rounds N --seconds S --quick --name <file>]
 * Measures tracegate beside other proxies on this machine, prints a markdown table and writes bench/results/<name>.json.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { messageOf } from "../src/base/errors.ts";
import { findCores } from "./lib/cores.ts";
import { abandon, findProgram, makeFolder, stopAll } from "./lib/proc.ts";
import { markdownTable, verdictOf } from "./lib/table.ts";
import type { Bench, Measure, Row } from "./lib/types.ts";
import { ROWS } from "./rows/index.ts";

interface Options {
  readonly rows: readonly Row[];
  readonly rounds: number;
  readonly seconds: number;
  readonly name: string;
}

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: "string" },
      seconds: { type: "string" },
      quick: { type: "boolean", default: false },
      name: { type: "string" },
    },
  });
  const unknown = positionals.filter((name) => !ROWS.some((row) => row.name === name));
  if (unknown.length > 0) {
    throw new Error(`unknown row ${unknown.join(", ")}; the rows are ${ROWS.map((row) => row.name).join(", ")}`);
  }
  return {
    rows: positionals.length === 0 ? ROWS : ROWS.filter((row) => positionals.includes(row.name)),
    rounds: positive("--rounds", values.rounds, values.quick ? 3 : 7),
    seconds: positive("--seconds", values.seconds, values.quick ? 2 : 8),
    name: values.name ?? new Date().toISOString().slice(0, 19).replaceAll(":", "-"),
  };
}

function positive(flag: string, text: string | undefined, fallback: number): number {
  const value = Number(text ?? fallback);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`${flag} must be a whole number of at least 1; it is ${text}`);
  return value;
}

async function runRows(options: Options): Promise<void> {
  for (const tool of ["taskset", "wrk", "h2load", "nginx"]) {
    if (findProgram(tool) === undefined)
      throw new Error(`${tool} is missing: apt-get install util-linux wrk nghttp2 nginx`);
  }
  const measures: Measure[] = [];
  const samples: Record<string, unknown> = {};
  for (const row of options.rows) {
    const bench = await makeBench(row, options);
    bench.note(row.title);
    const result = await row.run(bench);
    measures.push(...result.measures);
    samples[row.name] = result.samples;
    await stopAll();
  }
  process.stdout.write(`\n${markdownTable(measures)}\n`);
  await save(options, measures, samples);
}

async function makeBench(row: Row, { rounds, seconds }: Options): Promise<Bench> {
  const note = (text: string): void => void process.stderr.write(`[${row.name}] ${text}\n`);
  return { rounds, seconds, cores: findCores(), folder: await makeFolder(), note };
}

async function save(options: Options, measures: readonly Measure[], samples: unknown): Promise<void> {
  const folder = fileURLToPath(new URL("results/", import.meta.url));
  await mkdir(folder, { recursive: true });
  const machine = {
    cpu: cpus()[0]?.model,
    cores: findCores().count,
    memoryMiB: Math.round(totalmem() / 2 ** 20),
    kernel: release(),
    node: process.version,
  };
  const judged = measures.map((measure) => ({ ...measure, verdict: verdictOf(measure) }));
  const { rounds, seconds } = options;
  const report = { date: new Date().toISOString(), machine, rounds, seconds, measures: judged, samples };
  await writeFile(`${folder}${options.name}.json`, `${JSON.stringify(report)}\n`);
  process.stderr.write(`written: bench/results/${options.name}.json\n`);
}

let interrupted = false;
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  process.once(signal, () => {
    interrupted = true;
    void abandon().then(() => process.exit(code));
  });
}
try {
  await runRows(readOptions());
} catch (error) {
  if (!interrupted) process.stderr.write(`bench failed: ${messageOf(error)}\n`);
  process.exitCode = 1;
} finally {
  await stopAll();
}
