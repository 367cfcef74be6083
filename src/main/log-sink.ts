import { fstatSync, writeSync } from "node:fs";
import { linesIn } from "../base/lines.ts";
import { counter, type ExtraMetric } from "../telemetry/prometheus.ts";

/** Where the lines of a log go. */
export type Sink = Pick<LogSink, keyof LogSink>;

/** Bytes that may wait for a slow reader: about twenty thousand lines of the access log. */
const MAX_WAITING = 4 * 1024 * 1024;
const STDOUT = 1;
const LINE_FEED = 0x0a;

type Loss = "failed" | "queue_full" | "file";

/**
 * Standard output that never blocks or ends the gateway: lines that cannot be written (full disk, closed pipe) or exceed the
 * buffer of a slow reader are dropped and counted. The next line that can be written is preceded by one that says how many are
 * missing.
 */
export class LogSink {
  /** For pipes, sockets and terminals, which may be slow; undefined for files and devices, which are written synchronously. */
  readonly #stream: NodeJS.WriteStream | undefined;
  readonly #describe: (lines: number) => string;
  readonly #dropped: Record<Loss, number> = { failed: 0, queue_full: 0, file: 0 };
  /** Lines dropped since the log last reported any. */
  #unreported = 0;
  /** The buffer is full: lines are dropped until the reader has emptied it, so that gaps are few and long. */
  #full = false;
  /** The last line of the file was written in part. */
  #torn = false;

  /** `describe` makes the line, with its line break, that says how many were dropped. */
  constructor(describe: (lines: number) => string) {
    this.#describe = describe;
    if (isFile(STDOUT)) return;
    this.#stream = process.stdout;
    // Each write has its own error callback.
    this.#stream.on("error", () => {});
    this.#stream.on("drain", () => {
      this.#full = false;
      if (this.#unreported > 0) this.write("");
    });
  }

  /** Whole lines with their line breaks; bytes are UTF-8 and may be reused after the call. */
  write(lines: string | Uint8Array): void {
    if (this.#stream !== undefined) this.#writeToStream(this.#stream, lines);
    else if (typeof lines === "string") this.#writeToFile(Buffer.from(lines));
    else this.#writeToFile(Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength));
  }

  /** Counts lines that a worker dropped because its `LogRing` was full. */
  addDropped(lines: number): void {
    this.#lose("queue_full", lines);
  }

  /** Counts lines that a `LogFile` dropped, which it reports itself. */
  addLost(lines: number): void {
    this.#dropped.file += lines;
  }

  metrics(): ExtraMetric[] {
    const dropped = Object.entries(this.#dropped).map(([reason, value]) => ({ labels: { reason }, value }));
    return [counter("tracegate_log_lines_dropped_total", "Log lines that could not be written.", dropped)];
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

  #writeToStream(stream: NodeJS.WriteStream, lines: string | Uint8Array): void {
    // A copy, because they wait for the reader.
    const bytes = Buffer.from(lines);
    if (stream.writableLength > 0 && stream.writableLength + bytes.length > MAX_WAITING) this.#full = true;
    if (this.#full) {
      this.#lose("queue_full", linesIn(bytes));
      return;
    }
    const unreported = this.#unreported;
    this.#unreported = 0;
    if (unreported > 0)
      stream.write(this.#describe(unreported), (error) => {
        if (isFailure(error)) this.#unreported += unreported;
      });
    if (bytes.length === 0) return;
    stream.write(bytes, (error) => {
      if (!isFailure(error)) return;
      this.#full = false;
      this.#lose("failed", linesIn(bytes));
    });
  }

  #writeToFile(bytes: Buffer): void {
    if (this.#unreported > 0) {
      const notice = Buffer.from(`${this.#torn ? "\n" : ""}${this.#describe(this.#unreported)}`);
      if (this.#writeNow(notice) < notice.length) {
        this.#lose("failed", linesIn(bytes));
        return;
      }
      this.#unreported = 0;
    }
    const written = this.#writeNow(bytes);
    if (written < bytes.length) this.#lose("failed", linesIn(bytes.subarray(written)));
  }

  /** Returns the number of bytes written before an error. */
  #writeNow(bytes: Buffer): number {
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(STDOUT, bytes, written);
    } catch {
      // The caller counts the lines that were not written.
    }
    if (written > 0) this.#torn = bytes[written - 1] !== LINE_FEED;
    return written;
  }

  #lose(reason: Loss, lines: number): void {
    this.#dropped[reason] += lines;
    this.#unreported += lines;
  }
}

function isFailure(error: Error | null | undefined): boolean {
  return error !== null && error !== undefined;
}

/** Files, and devices such as /dev/null and /dev/full. Terminals are devices too, but Node.js writes to them as to pipes. */
function isFile(descriptor: number): boolean {
  const stats = fstatSync(descriptor);
  return stats.isFile() || (stats.isCharacterDevice() && !process.stdout.isTTY);
}
