/** Runs a gateway in this process: log, signals, validation, and the quick start. Called by the commands of `tracegate`. */
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { appRoot } from "../base/app-root.ts";
import { messageOf } from "../base/errors.ts";
import type { Logger, LogOutput } from "../base/log.ts";
import { type Context, write } from "../cli/runner/context.ts";
import { checkConfig, strictReport } from "../config/check.ts";
import type { ConfigSource } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { WorkerThreads } from "../worker/worker-threads.ts";
import { renderReport } from "./check-report.ts";
import { createDefaultConfig, defaultConfigPath } from "./default-config.ts";
import { Gateway, type GatewayOptions, StartError } from "./gateway.ts";
import { type GatewayLog, makeLog } from "./gateway-log.ts";
import type { HarmlessSignals } from "./harmless-signals.ts";
import { isNpmScript, onceEach, onParentGone } from "./npm-script.ts";
import { quickstartText, tgctlCommand } from "./quickstart-text.ts";
import { ServiceManager } from "./service-manager.ts";
import { onOrphaned, reportReady } from "./supervised.ts";
import { TakeOverSocket } from "./take-over/giver.ts";
import { inheritedSockets, tellPredecessor } from "./take-over/successor.ts";

/** Port of the echo server, to which the quick start's configuration and the examples send requests. */
const ECHO_PORT = 9099;

/** The configuration of a command line: text, files, or with neither the default file. */
interface NamedConfig {
  readonly file: readonly string[];
  readonly config: string | undefined;
  /** Warnings are errors, at the start and for reloads. */
  readonly strict: boolean;
}

/** Validates a configuration as a start would. Resolves with the exit code: 0 valid, 1 not. */
export async function validateOnly(named: NamedConfig, { env, stdout, stderr }: Context): Promise<number> {
  const source = sourceOf(named);
  const path = defaultPathOf(named);
  if (path !== undefined && !existsSync(path)) {
    await write(stdout, "No local configuration\nConfiguration is valid!\n");
    return 0;
  }
  const checked = await checkConfig(source, env);
  const report = named.strict ? strictReport(checked.report) : checked.report;
  await write(stderr, renderReport(report));
  if (report.ok) await write(stdout, "Configuration is valid!\n");
  return report.ok ? 0 : 1;
}

/**
 * Runs a gateway until it is stopped; resolves with the exit code. A `supervised` gateway reports to the process that started
 * it, and stops with it. `threads` are worker threads that were started early. Rejects with StartError if it cannot start.
 */
export async function runGateway(
  named: NamedConfig,
  supervised: boolean,
  threads: WorkerThreads,
  signals: HarmlessSignals,
): Promise<number> {
  const path = defaultPathOf(named);
  const created = path !== undefined && createDefaultConfig(path);
  const introduce = (log: Logger): void => {
    if (path === undefined) return;
    log.info(created ? "created a configuration" : "no configuration was named, using the default", { file: path });
  };
  const inherited = inheritedSockets(process.env);
  try {
    const { stopped } = await start(sourceOf(named), signals, introduce, supervised, {
      threads,
      inherited,
      strict: named.strict,
    });
    return stopped;
  } catch (error) {
    if (inherited.takesOver) await tellPredecessor({ type: "failed", problem: messageOf(error) });
    throw error;
  }
}

/** `introduce` writes the first lines of the log. `stopped` resolves with the exit code once the gateway has drained. */
async function start(
  source: ConfigSource,
  signals: HarmlessSignals,
  introduce: (log: Logger) => void = () => {},
  supervised = false,
  options: GatewayOptions = {},
): Promise<{ readonly gateway: Gateway; readonly stopped: Promise<number> }> {
  const { inherited } = options;
  const { promise: stopped, resolve } = Promise.withResolvers<number>();
  let gateway: Gateway | undefined;
  let manager: ServiceManager | undefined;
  let takeOvers: TakeOverSocket | undefined;
  // Handlers are installed before the start: a signal that arrives with the first requests must drain them. Until the gateway
  // runs there is nothing to drain.
  const stop = (exitCode: number): void => {
    if (gateway === undefined) process.exit(exitCode);
    manager?.stopping();
    void gateway.shutdown();
  };
  // The first signal drains, any second one ends the process at once (reference 7).
  let signalled = false;
  const act = (exitCode: number): void => {
    if (signalled) process.exit(exitCode);
    signalled = true;
    stop(exitCode);
  };
  const npm = isNpmScript(process.env);
  const onSignal = npm ? onceEach(act) : act;
  if (npm) onParentGone(() => stop(143));
  process.on("SIGTERM", () => onSignal(143));
  process.on("SIGINT", () => onSignal(130));
  signals.onTerminalClosed = () => stop(129);
  signals.onReload = () => void reload(gateway, manager);
  if (supervised) onOrphaned(() => stop(143));
  let gatewayLog: LogOutput | undefined;
  const log = (settings: Settings): GatewayLog => {
    const made = makeLog(settings, process.env);
    gatewayLog = made.output;
    introduce(made.output.logger("gateway"));
    signals.onReopen = () => {
      made.file?.reopen();
      if (made.file !== undefined) return;
      const message = "the signal does nothing: the log is standard output, SIGHUP reloads, SIGTERM drains";
      made.output.logger("gateway").warn(message, { signal: "SIGUSR2" });
    };
    manager = ServiceManager.of(process.env, made.output.logger("gateway"));
    return made;
  };
  const onStopped = (): void => {
    takeOvers?.close();
    if (manager === undefined) resolve(0);
    else void manager.sent.then(() => resolve(0));
  };
  gateway = await Gateway.start(source, process.env, log, onStopped, options);
  if (supervised) reportReady();
  const running = gateway;
  running.onAttempt = () => manager?.changed(statusOf(running));
  void running.ready.then(async () => {
    if (running.draining) return;
    const takesOver = inherited?.takesOver === true;
    manager?.ready(statusOf(running), takesOver);
    // systemd must know the new main process before the former one ends.
    await manager?.sent;
    if (takesOver) await tellPredecessor({ type: "serving" });
    if (inherited === undefined || supervised) return;
    const log = gatewayLog?.logger("gateway");
    if (log === undefined) return;
    takeOvers = await TakeOverSocket.open(running, log, process.env, () => {
      manager?.retire();
      manager = undefined;
      void running.handOver();
    });
  });
  return { gateway, stopped };
}

/** SIGHUP. systemd shows the reload while it lasts. */
async function reload(gateway: Gateway | undefined, manager: ServiceManager | undefined): Promise<void> {
  if (gateway === undefined || gateway.draining) return;
  manager?.reloading();
  await gateway.reload();
  if (!gateway.draining) manager?.ready(statusOf(gateway));
}

/** For `systemctl status`. */
function statusOf({ status }: Gateway): string {
  const { lastError } = status;
  return lastError === null
    ? "Serving"
    : `Serving the former configuration, the newest is rejected: ${lastError.message}`;
}

/**
 * Runs a gateway on `files`, by default examples/quickstart.yaml, with the echo server that all examples use as their backend.
 * Resolves with the exit code.
 */
export async function quickstart(files: readonly string[], signals: HarmlessSignals): Promise<number> {
  await startEcho(ECHO_PORT).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EADDRINUSE") throw error;
    throw new StartError(`port ${ECHO_PORT}, that of the echo server, is in use; stop what listens there`);
  });
  const { gateway, stopped } = await start(
    { kind: "files", paths: files.length > 0 ? files : [`${appRoot}examples/quickstart.yaml`] },
    signals,
  );
  gateway.sink.write(
    quickstartText(gateway.configuration.frame.binds, gateway.supervisor.ports, files, {
      echo: ECHO_PORT,
      tgctl: tgctlCommand(),
    }),
  );
  return stopped;
}

function sourceOf(named: NamedConfig): ConfigSource {
  if (named.config !== undefined) return { kind: "text", text: named.config, name: "--config" };
  return { kind: "files", paths: [defaultPathOf(named) ?? named.file].flat() };
}

/** Undefined if a configuration is named. */
function defaultPathOf({ config, file }: NamedConfig): string | undefined {
  return config === undefined && file.length === 0 ? defaultConfigPath(process.env) : undefined;
}

/**
 * The upstream of the quick start: responds with the received request as JSON, so that a user sees what the gateway
 * forwarded. Rejects if the port is in use.
 */
export function startEcho(port: number): Promise<Server> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const { method, url, headers } = request;
      const body = Buffer.concat(parts).toString("utf8");
      response.setHeader("content-type", "application/json");
      response.end(`${JSON.stringify({ method, url, headers, body }, undefined, 2)}\n`);
    });
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
