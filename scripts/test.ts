/**
 * npm test [-- [--deny-skips] file…]
 * Runs all test files, or those named, several in a process (scripts/lib/test-batches.ts). Every file has a hard limit: one that
 * exceeds it is named and ends the run, because a test that hangs must not take the results of the others with it. With
 * `--deny-skips`, which continuous integration uses, a skipped test fails the run unless its reason is listed below. A run of all
 * tests starts gateways and clients from the package as users install it, which takes a quarter of the CPU; named files start them
 * from the checkout.
 */
import { globSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { type EventData, run } from "node:test";
import { spec } from "node:test/reporters";
import { appRoot } from "../src/base/app-root.ts";
import { writeBatches } from "./lib/test-batches.ts";

const PATTERNS = ["src/**/*.test.ts", "scripts/**/*.test.ts", "test/**/*.test.ts", "ui/**/*.test.ts"];
/** Processes at once: more than there are cores, because tests wait for half of their time. */
const CONCURRENCY = availableParallelism() + 2;
/** Milliseconds for one test; what a test waits for is bounded well below. */
const TEST_LIMIT = 120_000;
/** Milliseconds for one file. The longest takes a tenth of it on two cores. */
const FILE_LIMIT = 300_000;

/** Tests that continuous integration may skip: the reason as the test gives it, and why that is acceptable. */
const ACCEPTED_SKIPS: ReadonlyMap<string, string> = new Map([
  ["no Go here", "the rate limit service is a Go program; its wire format is also tested without it"],
  ["Go cannot fetch the rate limit service here", "as above, on a machine that does not reach a module proxy"],
]);

const denySkips = process.argv.includes("--deny-skips");
const named = process.argv.slice(2).filter((argument) => argument !== "--deny-skips");
for (const name of named) if (name.startsWith("-")) fail(`unknown option ${name}; the only one is --deny-skips`);
const files = (named.length > 0 ? named : PATTERNS).flatMap((pattern) => {
  const found = globSync(pattern, { cwd: appRoot });
  return found.length > 0 ? found : fail(`no file matches ${pattern}`);
});

// Test processes and the gateways that they start spend more time on compiling than on anything else. The variable reaches
// all of them, worker threads included. They share the code that is kept if they have the same flags of V8.
const cache = `${appRoot}node_modules/.cache/compile`;
mkdirSync(cache, { recursive: true });
process.env.NODE_COMPILE_CACHE ??= cache;

const folder = mkdtempSync(`${tmpdir()}/tracegate-tests-`);
process.on("exit", () => rmSync(folder, { recursive: true }));
if (named.length === 0) {
  const { installPackage } = await import("./bundle/install.ts");
  process.env.TEST_PROGRAMS = await installPackage(folder);
  // For the launchers of the package: the Node.js that is pinned, whatever is installed here.
  process.env.PATH = `${dirname(process.execPath)}:${process.env.PATH}`;
}

const limit = new AbortController();
/** Files without a result yet; those that run have a timer. */
const open = new Map<string, NodeJS.Timeout | undefined>(files.map((file) => [file, undefined]));
const deniedSkips: string[] = [];
const tests = run({
  files: writeBatches(files, folder),
  cwd: appRoot,
  concurrency: CONCURRENCY,
  timeout: TEST_LIMIT,
  signal: limit.signal,
  execArgv: ["--require", `${appRoot}src/base/compile-cache.ts`],
});
// A process whose tests have ended may have left something open that keeps it from ending.
const silence = setTimeout(exceeded, FILE_LIMIT, "a process whose tests have all ended");
// A file is reported as a suite of its name.
tests.on("test:dequeue", ({ name }) => {
  silence.refresh();
  if (open.has(name)) open.set(name, setTimeout(exceeded, FILE_LIMIT, name));
});
tests.on("test:complete", ({ name }) => {
  silence.refresh();
  clearTimeout(open.get(name));
  open.delete(name);
});
tests.on("test:fail", () => {
  process.exitCode = 1;
});
tests.on("test:pass", (event) => {
  const reason = skipReason(event);
  if (reason !== undefined && !ACCEPTED_SKIPS.has(reason)) deniedSkips.push(`${event.name} (${event.file}): ${reason}`);
});
await pipeline(tests, new spec(), process.stdout, { end: false });
clearTimeout(silence);
if (open.size > 0) fail(`a process ended before it had run these files:\n  ${[...open.keys()].join("\n  ")}`);
if (denySkips && deniedSkips.length > 0)
  fail(`skipped without an accepted reason (see scripts/test.ts):\n  ${deniedSkips.join("\n  ")}`);

function exceeded(file: string): void {
  process.stderr.write(`${file} has exceeded ${FILE_LIMIT / 1000} s; the run ends here\n`);
  process.exitCode = 1;
  limit.abort();
}

function skipReason({ skip }: EventData.TestPass): string | undefined {
  if (skip === undefined || skip === false) return undefined;
  return typeof skip === "string" ? skip : "no reason given";
}

function fail(message: string): never {
  process.stderr.write(`test: ${message}\n`);
  process.exit(1);
}
