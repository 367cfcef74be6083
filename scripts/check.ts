/** `npm run check`: everything that can be checked about the project without running it. Fails when one step fails. */
import { checkExports } from "./exports.ts";
import { checkLayers } from "./layers.ts";
import { run } from "./lib/process.ts";
import { type Result, table } from "./lib/report.ts";
import { checkLinks } from "./links.ts";
import { checkLockfile } from "./lockfile.ts";
import { checkMessages } from "./messages.ts";
import { checkRooms } from "./rooms.ts";
import { checkSentences } from "./sentences.ts";
import { checkSizes } from "./sizes.ts";
import { checkWords } from "./words.ts";

/** A step that is a program: its output, when it fails, is the list of problems. */
async function tool(name: string, args: readonly string[], summary: string): Promise<Result> {
  const { code, output } = await run(name, args);
  return { problems: code === 0 ? [] : output.trimEnd().split("\n"), summary };
}

/** A step that throws, e.g. because a module does not load, fails without keeping the others from running. */
async function attempt(step: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await step();
  } catch (error) {
    return { problems: [String(error)], summary: "did not run to its end" };
  }
}

const sizes = checkSizes();
const STEPS: readonly { readonly name: string; readonly step: () => Result | Promise<Result> }[] = [
  { name: "types", step: () => tool("tsc", ["-p", "."], "tsc, strict") },
  { name: "types of the web view", step: () => tool("tsc", ["-p", "ui"], "tsc, strict, with the DOM") },
  {
    name: "lint and format",
    step: () =>
      tool("biome", ["ci", "--error-on-warnings", "--colors=off", "--reporter=concise", "."], "biome, warnings denied"),
  },
  { name: "layers", step: checkLayers },
  { name: "exports", step: checkExports },
  { name: "rooms", step: checkRooms },
  { name: "sentences", step: checkSentences },
  { name: "links", step: checkLinks },
  // These load the gateway's own modules: loaded late, one that does not load fails its own step only.
  { name: "generated files", step: async () => (await import("./generate.ts")).checkGenerated() },
  { name: "messages", step: checkMessages },
  { name: "lifecycle", step: async () => (await import("./lifecycle.ts")).checkLifecycle() },
  { name: "configurations", step: async () => (await import("./configurations.ts")).checkConfigurations() },
  { name: "lockfile", step: checkLockfile },
  { name: "words", step: checkWords },
  { name: "sizes", step: () => sizes },
];

const rows: (string | number)[][] = [];
for (const { name, step } of STEPS) {
  const start = performance.now();
  const { problems, summary } = await attempt(step);
  const outcome = problems.length === 0 ? "ok" : "FAILED";
  rows.push([name, outcome, `${((performance.now() - start) / 1000).toFixed(1)} s`, summary]);
  process.stdout.write(`${outcome} ${name}\n`);
  for (const problem of problems) process.stdout.write(`  ${problem}\n`);
}
const failed = rows.filter((row) => row[1] !== "ok").length;
process.stdout.write(`\n${sizes.table}\n\n${table([["step", "result", "time", "what"], ...rows])}\n\n`);
process.stdout.write(failed === 0 ? "check: all passed\n" : `check: ${failed} of ${rows.length} steps failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
