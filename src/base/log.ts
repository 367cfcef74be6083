import { LEVEL_RANK, type LogFilter, type LogLevel } from "./log-filter.ts";
import type { LogModule } from "./log-modules.ts";
import { quote, quoteIfNeeded } from "./log-quote.ts";
import { formatTimestamp } from "./timestamp.ts";

export type LogFormat = "text" | "json";
/** Values of one line; undefined ones are left out. An error shows its message, at level debug or trace its stack too. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined | Error>>;

/** Takes one finished line, newline included: standard output in the main thread, a batch to the main thread in others. */
export type LogWriter = (line: string) => void;

/** The one place that lines of a thread go through; the filter may be replaced at any time. */
export class LogOutput {
  filter: LogFilter;
  readonly format: LogFormat;
  readonly write: LogWriter;

  constructor(filter: LogFilter, format: LogFormat, write: LogWriter) {
    this.filter = filter;
    this.format = format;
    this.write = write;
  }

  /** A logger for one target. */
  logger(target: LogModule): Logger {
    return new Logger(target, this);
  }
}

/** Writes the lines of one target. A line that the filter stops costs two comparisons, if its fields cost nothing to make. */
export class Logger {
  readonly target: string;
  readonly output: LogOutput;
  #filter: LogFilter | undefined;
  #rank = 0;

  constructor(target: string, output: LogOutput) {
    this.target = target;
    this.output = output;
  }

  /** Whether a line of this level would be written; ask before building costly fields. */
  enabled(level: LogLevel): boolean {
    const { filter } = this.output;
    if (filter !== this.#filter) {
      this.#filter = filter;
      this.#rank = filter.rank(this.target);
    }
    return LEVEL_RANK[level] <= this.#rank;
  }

  error(message: string, fields?: LogFields): void {
    this.log("error", message, fields);
  }
  warn(message: string, fields?: LogFields): void {
    this.log("warn", message, fields);
  }
  info(message: string, fields?: LogFields): void {
    this.log("info", message, fields);
  }
  debug(message: string, fields?: LogFields): void {
    this.log("debug", message, fields);
  }
  trace(message: string, fields?: LogFields): void {
    this.log("trace", message, fields);
  }

  log(level: LogLevel, message: string, fields?: LogFields): void {
    if (!this.enabled(level)) return;
    this.output.write(formatLine(this.output.format, level, this.target, message, fields));
  }
}

/**
 * `<time>\t<level>\t<target> <message> k=v …`, or a JSON object with `level`, `time`, `scope`, `message` and the fields, with
 * its line break.
 */
export function formatLine(
  format: LogFormat,
  level: LogLevel,
  target: string,
  message: string,
  fields?: LogFields,
): string {
  const time = formatTimestamp(Date.now());
  const json = format === "json";
  let line = json
    ? `{"level":"${level}","time":"${time}","scope":${quote(target)},"message":${quote(message)}`
    : `${time}\t${level}\t${target} ${oneLine(message)}`;
  for (const [name, value] of Object.entries(fields ?? {})) {
    if (value === undefined) continue;
    const shown = value instanceof Error ? describe(value, level) : value;
    if (json) line += `,${quote(name)}:${typeof shown === "string" ? quote(shown) : JSON.stringify(shown)}`;
    else line += ` ${name}=${typeof shown === "string" ? quoteIfNeeded(shown) : shown}`;
  }
  return json ? `${line}}\n` : `${line}\n`;
}

/** Messages are readable text, but may quote what a peer sent: nothing in them may begin a new line or move the cursor. */
function oneLine(message: string): string {
  const quoted = quote(message);
  const inner = quoted.slice(1, -1).replaceAll('\\"', '"');
  return inner.length === message.length ? message : inner;
}

function describe(error: Error, level: LogLevel): string {
  if (LEVEL_RANK[level] >= LEVEL_RANK.debug) return error.stack ?? error.message;
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
