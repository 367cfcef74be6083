import { formatLine, LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { Settings } from "../config/settings.ts";
import type { AccessFormat } from "../telemetry/settings.ts";
import { LogFile } from "./log-file.ts";
import { LogSink, type Sink } from "./log-sink.ts";

/** The log of a gateway: lines of the main thread and of workers go to one sink, those of the access log perhaps to a file. */
export interface GatewayLog {
  readonly output: LogOutput;
  readonly sink: Sink;
  /** Default: that of `output`. */
  readonly accessFormat?: AccessFormat;
  /** For the access log; default: it goes to `sink`. */
  readonly file?: LogFile | undefined;
}

const FORMATS: readonly AccessFormat[] = ["text", "json", "combined", "common"];

/**
 * The log that `settings` ask for. `LOG_FORMAT` and `RUST_LOG` of `env` take precedence over them
 * (docs/configuration.md#environment-variables). `sink`: another place for lines than standard output.
 */
export function makeLog(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
  sink?: Sink,
): GatewayLog {
  const accessFormat = FORMATS.find((each) => each === env.LOG_FORMAT) ?? settings.logging.format;
  const format = accessFormat === "json" ? "json" : "text";
  const lines =
    sink ?? new LogSink((lost) => formatLine(format, "warn", "gateway", "log lines were dropped", { lines: lost }));
  const filter = parseLogFilter(env.RUST_LOG ?? settings.logging.level);
  const output = new LogOutput(filter, format, (line) => lines.write(line));
  const { output: wanted } = settings.logging;
  const file = wanted && new LogFile(wanted, output.logger("gateway"), (lost) => lines.addLost(lost));
  return { output, sink: lines, accessFormat, file };
}
