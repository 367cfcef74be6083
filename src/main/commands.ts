/** The commands of `tracegate` that need its engine. */
import { existsSync } from "node:fs";
import { isatty } from "node:tty";
import { appRoot } from "../base/app-root.ts";
import { formatLine, type Logger, LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { ConfigSource } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { check } from "./check.ts";
import { createDefaultConfig, defaultConfigPath } from "./default-config.ts";
import { startEcho } from "./echo.ts";
import { Gateway, StartError } from "./gateway.ts";
import { type GatewayLog, LogSink } from "./log-sink.ts";
import { migrate } from "./migrate.ts";
import { oneshot } from "./oneshot.ts";
import type { Options } from "./options.ts";
import { print } from "./print.ts";
import { onOrphaned, tellReady } from "./supervised.ts";

/** Where the quick start's configuration and the examples send requests. */
const ECHO_PORT = 9099;
/** What the environment may say about how lines look; wins over the configuration (reference 3.29). */
const { LOG_FORMAT, RUST_LOG } = process.env;

/** Runs the command that `options` name. Rejects with ExpectedError when its input is at fault. */
export async function runCommand(options: Exclude<Options, { command: "help" | "version" }>): Promise<void> {
  switch (options.command) {
    case "check":
      process.exitCode = await check({ kind: "file", path: options.file }, options.json, process.env, print);
      return;
    case "oneshot":
      process.exitCode = await oneshot(options);
      return;
    case "migrate":
      process.exitCode = migrate(options.file, print);
      return;
    case "quickstart":
      await quickstart(options.file);
      return;
    case "run":
      await run(options);
  }
}

async function run(options: Extract<Options, { command: "run" }>): Promise<void> {
  const { source, byDefault } = sourceOf(options);
  if (options.validateOnly) {
    if (byDefault && source.kind === "file" && !existsSync(source.path)) {
      print("No local configuration\nConfiguration is valid!\n");
      return;
    }
    process.exitCode = await check(source, false, process.env, (text) => void process.stderr.write(text));
    if (process.exitCode === 0) print("Configuration is valid!\n");
    return;
  }
  const created = byDefault && source.kind === "file" && createDefaultConfig(source.path);
  const introduce = (log: Logger): void => {
    if (!byDefault || source.kind !== "file") return;
    log.info(created ? "created a configuration" : "no configuration was named, using the default", {
      file: source.path,
    });
  };
  await start(source, introduce, options.supervised);
}

/** `introduce` writes the first lines of the log. A `supervised` gateway reports to the process that started it. */
async function start(
  source: ConfigSource,
  introduce: (log: Logger) => void = () => {},
  supervised = false,
): Promise<Gateway> {
  let gateway: Gateway | undefined;
  // Listened to before the start, or a signal that comes with the first requests would end them. Before that there is
  // nothing to drain.
  const stop = (exitCode: number): void => {
    if (gateway === undefined) process.exit(exitCode);
    void gateway.shutdown();
  };
  // The first signal drains, a second one ends the process at once, whichever it is (reference 7).
  let signalled = false;
  const onSignal = (exitCode: number): void => {
    if (signalled) process.exit(exitCode);
    signalled = true;
    stop(exitCode);
  };
  process.on("SIGTERM", () => onSignal(143));
  process.on("SIGINT", () => onSignal(130));
  // Before the start there is nothing to reload: what has changed by then is noticed.
  const attended = isatty(0);
  process.on("SIGHUP", () => {
    // The terminal is closed, so no user is left to stop the process.
    if (attended && !isatty(0)) stop(129);
    else gateway?.reload();
  });
  if (supervised) onOrphaned(() => stop(143));
  const log = (settings: Settings): GatewayLog => {
    const made = makeLog(settings);
    introduce(made.output.logger("gateway"));
    return made;
  };
  gateway = await Gateway.start(source, process.env, log, () => process.exit(0));
  if (supervised) tellReady();
  return gateway;
}

/** A gateway on `file`, or on a configuration that comes along, with an echo server where all examples have their backend. */
async function quickstart(file: string | undefined): Promise<void> {
  await startEcho(ECHO_PORT).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EADDRINUSE") throw error;
    throw new StartError(`port ${ECHO_PORT}, that of the echo server, is in use; stop what listens there`);
  });
  const gateway = await start({ kind: "file", path: file ?? `${appRoot}examples/quickstart.yaml` });
  const port = Object.values(gateway.supervisor.ports)[0];
  if (port === undefined) return;
  const path = file === undefined ? "/api/hello" : "/";
  gateway.sink.write(`
tracegate serves http://localhost:${port}. Try, in another terminal:

  curl -s "http://localhost:${port}${path}?name=you"
  npx tgctl proxy trace --local --port ${port} -- http://localhost:${port}${path}
${file === undefined ? "" : `\nThe echo server listens on 127.0.0.1:${ECHO_PORT}. Examples say in their first lines what to try.\n`}
Press Ctrl-C to stop.
`);
}

function makeLog(settings: Settings): GatewayLog {
  const format = LOG_FORMAT === "json" || LOG_FORMAT === "text" ? LOG_FORMAT : settings.logging.format;
  const sink = new LogSink((lines) => formatLine(format, "warn", "gateway", "log lines were dropped", { lines }));
  const filter = parseLogFilter(RUST_LOG ?? settings.logging.level);
  return { output: new LogOutput(filter, format, (line) => sink.write(line)), sink };
}

/** The configuration that the command line names, or the default one. */
function sourceOf({ config, file }: Extract<Options, { command: "run" }>): {
  readonly source: ConfigSource;
  readonly byDefault: boolean;
} {
  if (config !== undefined) return { source: { kind: "text", text: config, name: "--config" }, byDefault: false };
  return { source: { kind: "file", path: file ?? defaultConfigPath(process.env) }, byDefault: file === undefined };
}
