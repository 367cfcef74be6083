import { fstatSync, writeSync } from "node:fs";
import type { LogOutput } from "../base/log.ts";
import type { ExtraMetric } from "../telemetry/prometheus.ts";

/** The log of a gateway: what main thread and workers write goes to one sink. */
export interface GatewayLog {
  readonly output: LogOutput;
  readonly sink: LogSink;
}

/** Bytes that may wait for the reader of a pipe; some twenty thousand lines of the access log. */
const MAX_WAITING = 4 * 1024 * 1024;
const STDOUT = 1;
const LINE_FEED = 0x0a;

type Loss = "failed" | "queue_full";

/**
 * Standard output as a log must have it: lines that cannot be written (a full disk, a reader that has gone) or that a slow
 * reader leaves no room for are dropped and counted, and the gateway serves on. The first line that can be written again says
 * how many are missing.
 */
export class LogSink {
  /** Pipes, sockets and terminals, which may be slow; undefined for files and devices, which take what they can at once. */
  readonly #stream: NodeJS.WriteStream | undefined;
  readonly #describe: (lines: number) => string;
  readonly #dropped: Record<Loss, number> = { failed: 0, queue_full: 0 };
  /** Lines dropped since the log last reported any. */
  #untold = 0;
  /** The reader has left no room: lines are dropped until it has taken everything. */
  #full = false;
  /** A file ends inside a line that could not be written as a whole. */
  #torn = false;

  /** `describe` makes the line, with its line break, that tells how many were dropped. */
  constructor(describe: (lines: number) => string) {
    this.#describe = describe;
    if (isFile(STDOUT)) return;
    this.#stream = process.stdout;
    // Each write has its own error callback.
    this.#stream.on("error", () => {});
    this.#stream.on("drain", () => {
      this.#full = false;
      if (this.#untold > 0) this.write("");
    });
  }

  /** Whole lines with their line breaks; bytes are UTF-8. */
  write(lines: string | Uint8Array): void {
    const bytes =
      typeof lines === "string" ? Buffer.from(lines) : Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
    if (this.#stream === undefined) this.#writeToFile(bytes);
    else this.#writeToStream(this.#stream, bytes);
  }

  /** Counts lines that were dropped before they came here, for want of room. */
  addDropped(lines: number): void {
    this.#lose("queue_full", lines);
  }

  metrics(): ExtraMetric[] {
    return [
      {
        name: "tracegate_log_lines_dropped_total",
        type: "counter",
        help: "Lines of the log that could not be written to standard output.",
        samples: Object.entries(this.#dropped).map(([reason, value]) => ({ labels: { reason }, value })),
      },
    ];
  }

  /** Resolves when everything is written, after `deadlineMs` at most. */
  async flush(deadlineMs: number): Promise<void> {
    const stream = this.#stream;
    if (stream === undefined || stream.writableLength === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, deadlineMs);
    stream.write("", () => resolve());
    await promise;
    clearTimeout(timer);
  }

  #writeToStream(stream: NodeJS.WriteStream, bytes: Buffer): void {
    if (stream.writableLength > 0 && stream.writableLength + bytes.length > MAX_WAITING) this.#full = true;
    if (this.#full) {
      this.#lose("queue_full", linesIn(bytes));
      return;
    }
    const untold = this.#untold;
    this.#untold = 0;
    if (untold > 0)
      stream.write(this.#describe(untold), (error) => {
        if (isFailure(error)) this.#untold += untold;
      });
    if (bytes.length === 0) return;
    stream.write(bytes, (error) => {
      if (!isFailure(error)) return;
      this.#full = false;
      this.#lose("failed", linesIn(bytes));
    });
  }

  #writeToFile(bytes: Buffer): void {
    if (this.#untold > 0) {
      const notice = Buffer.from(`${this.#torn ? "\n" : ""}${this.#describe(this.#untold)}`);
      if (this.#writeNow(notice) < notice.length) {
        this.#lose("failed", linesIn(bytes));
        return;
      }
      this.#untold = 0;
    }
    const written = this.#writeNow(bytes);
    if (written < bytes.length) this.#lose("failed", linesIn(bytes.subarray(written)));
  }

  /** Returns how many bytes the system has taken before it took no more. */
  #writeNow(bytes: Buffer): number {
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(STDOUT, bytes, written);
    } catch {
      // What is missing is counted.
    }
    if (written > 0) this.#torn = bytes[written - 1] !== LINE_FEED;
    return written;
  }

  #lose(reason: Loss, lines: number): void {
    this.#dropped[reason] += lines;
    this.#untold += lines;
  }
}

function isFailure(error: Error | null | undefined): boolean {
  return error !== null && error !== undefined;
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) lines++;
  return lines;
}

/** Files, and devices such as /dev/null and /dev/full. Terminals are devices too, but Node.js writes to them as to pipes. */
function isFile(descriptor: number): boolean {
  const stats = fstatSync(descriptor);
  return stats.isFile() || (stats.isCharacterDevice() && !process.stdout.isTTY);
}
