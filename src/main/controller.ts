/** Runs the Kubernetes controller in this process: settings, log and signals. Called by `tracegate controller`. */
import { existsSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { packageVersion } from "../base/build-info.ts";
import { messageOf } from "../base/errors.ts";
import { formatLine, LogOutput } from "../base/log.ts";
import { CliError } from "../cli/runner/errors.ts";
import { type ControllerSettings, controllerSettings } from "../controller/base/settings.ts";
import { Controller } from "../controller/controller.ts";
import { componentFilter } from "../controller/log-levels.ts";
import { type ClusterChoice, findCluster } from "../kube/connect.ts";
import { LogSink } from "./log-sink.ts";
import { versionInfo } from "./version.ts";

/** Milliseconds for a slow reader of the log to read the last lines. */
const LOG_FLUSH_MS = 1000;
const RESOLV_CONF = "/etc/resolv.conf";

function settingsFrom(env: Readonly<Record<string, string | undefined>>, version: string): ControllerSettings {
  try {
    return controllerSettings(
      env,
      version,
      hostname(),
      existsSync(RESOLV_CONF) ? readFileSync(RESOLV_CONF, "utf8") : "",
    );
  } catch (error) {
    throw new CliError("failure", messageOf(error));
  }
}

/** Runs until SIGTERM or SIGINT; resolves with the exit code, 0. A second signal ends the process at once. */
export async function runController(
  env: Readonly<Record<string, string | undefined>>,
  choice: ClusterChoice,
): Promise<number> {
  const version = packageVersion();
  const settings = settingsFrom(env, version);
  const format = env.LOG_FORMAT === "text" ? "text" : "json";
  const sink = new LogSink((lines) =>
    formatLine(format, "warn", "default", "log lines were dropped", { lines }, "component"),
  );
  const { promise: signalled, resolve: stop } = Promise.withResolvers<void>();
  let signals = 0;
  const onSignal = (exitCode: number): void => {
    if (++signals > 1) process.exit(exitCode);
    stop();
  };
  process.on("SIGTERM", () => onSignal(143));
  process.on("SIGINT", () => onSignal(130));
  try {
    const output = new LogOutput(componentFilter(settings.logLevel), format, (line) => sink.write(line), "component");
    const log = output.logger("default");
    const access = await findCluster(env, choice);
    log.info("starting", {
      version,
      server: access.server.href,
      controllerName: settings.controllerName,
    });
    const controller = await Controller.start({ settings, access, version, build: versionInfo, output });
    await signalled;
    log.info("stopping");
    await controller.close();
  } catch (error) {
    throw new CliError("failure", messageOf(error));
  }
  await sink.flush(LOG_FLUSH_MS);
  return 0;
}
