/** The program `tracegate`: reads its command line and puts the gateway together. */
import { writeSync } from "node:fs";
import { appRoot } from "./base/app-root.ts";
import { LogOutput } from "./base/log.ts";
import { parseLogFilter } from "./base/log-filter.ts";
import type { ConfigSource } from "./config/load.ts";
import type { Settings } from "./config/settings.ts";
import { check } from "./main/check.ts";
import { startEcho } from "./main/echo.ts";
import { Gateway, StartError } from "./main/gateway.ts";
import { HELP, type Options, parseOptions, UsageError } from "./main/options.ts";
import { versionInfo } from "./main/version.ts";

/** Where the quick start's configuration sends requests. */
const ECHO_PORT = 9099;
/** What the environment may say about how lines look; wins over the configuration (reference 3.29). */
const { LOG_FORMAT, RUST_LOG } = process.env;

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  switch (options.command) {
    case "help":
      print(HELP);
      return;
    case "version":
      print(options.long ? `${JSON.stringify(versionInfo(), undefined, 2)}\n` : `${versionInfo().version}\n`);
      return;
    case "check":
      process.exitCode = check({ kind: "file", path: options.file }, options.json, process.env, print);
      return;
    case "quickstart":
      await quickstart();
      return;
    case "run":
      await run(options);
  }
}

async function run(options: Extract<Options, { command: "run" }>): Promise<void> {
  const source = sourceOf(options);
  if (options.validateOnly) {
    process.exitCode = check(source, false, process.env, (text) => void process.stderr.write(text));
    if (process.exitCode === 0) print("Configuration is valid!\n");
    return;
  }
  await start(source);
}

async function start(source: ConfigSource): Promise<Gateway> {
  let gateway: Gateway | undefined;
  // Listened to before the start, or a signal that comes with the first requests would end them. Before that there is
  // nothing to drain.
  const stop = (exitCode: number): void => {
    if (gateway === undefined) process.exit(exitCode);
    void gateway.shutdown();
  };
  // The first signal drains, a second interrupt ends at once (reference 7).
  process.once("SIGTERM", () => stop(143));
  process.once("SIGINT", () => {
    stop(130);
    process.once("SIGINT", () => process.exit(130));
  });
  gateway = await Gateway.start(source, process.env, makeOutput, () => process.exit(0));
  return gateway;
}

async function quickstart(): Promise<void> {
  await startEcho(ECHO_PORT);
  const gateway = await start({ kind: "file", path: `${appRoot}examples/quickstart.yaml` });
  const port = Object.values(gateway.supervisor.ports)[0] ?? 0;
  print(`
tracegate serves http://localhost:${port}. Try, in another terminal:

  curl -s http://localhost:${port}/api/hello?name=you
  npx tgctl proxy trace --local --port ${port} -- http://localhost:${port}/api/hello

Press Ctrl-C to stop.
`);
}

function makeOutput(settings: Settings): LogOutput {
  const format = LOG_FORMAT === "json" || LOG_FORMAT === "text" ? LOG_FORMAT : settings.logging.format;
  return new LogOutput(parseLogFilter(RUST_LOG ?? settings.logging.level), format, print);
}

function sourceOf({ config, file }: Extract<Options, { command: "run" }>): ConfigSource {
  if (config !== undefined) return { kind: "text", text: config, name: "--config" };
  return { kind: "file", path: file ?? "" };
}

/** Standard output may be closed by its reader (`| head`): that ends the program quietly. */
function print(text: string): void {
  process.stdout.write(text);
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

main().catch((error: unknown) => {
  const usage = error instanceof UsageError;
  const known = usage || error instanceof StartError;
  const text = known
    ? (error as Error).message
    : error instanceof Error
      ? (error.stack ?? error.message)
      : String(error);
  writeSync(2, `tracegate: ${text}\n`);
  process.exit(usage ? 2 : 1);
});
