/**
 * Bulk data from a worker to the main thread: log lines, and spans and log records for exporters. A message per line would wake
 * both threads for every request, so entries are collected by time and size and sent together. A worker makes one `LogBatch`
 * and one `ChunkBatches`.
 */
import type { LineBuffer } from "../telemetry/access-log.ts";
import { type Chunk, type EntrySink, encodeChunk } from "../telemetry/otlp/messages.ts";

/** Milliseconds that a line waits for others: short enough for someone who follows the log. */
const LOG_FLUSH_MS = 50;
/**
 * A batch of this size is sent at once. Also the size of the buffer, one per worker, of which a worker uses what 50 ms bring. A
 * message wakes the main thread, which costs 0.2 ms when it has nothing else to do.
 */
const LOG_FLUSH_BYTES = 1024 * 1024;
/** The most that a UTF-16 code unit takes in UTF-8; lengths are estimated by it, because counting bytes would cost a pass. */
const MAX_UTF8_BYTES_PER_CODE_UNIT = 3;

/**
 * Collects log lines, so that a line costs no message between threads. Lines of the access log are written into it byte by byte;
 * others come as text.
 */
export class LogBatch implements LineBuffer {
  readonly #send: (lines: Uint8Array) => void;
  readonly #lines = Buffer.allocUnsafeSlow(LOG_FLUSH_BYTES);
  /** Holds a line that may not fit into a batch. */
  #long: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;
  at = 0;

  /** `send` gets whole lines, in bytes that are valid during the call only. */
  constructor(send: (lines: Uint8Array) => void) {
    this.#send = send;
  }

  /** Adds a line, which ends with its line break. */
  add(line: string): void {
    const bytes = this.room(line.length * MAX_UTF8_BYTES_PER_CODE_UNIT);
    this.commit(this.at + bytes.write(line, this.at));
  }

  room(most: number): Buffer {
    if (this.at + most > LOG_FLUSH_BYTES) this.flush();
    if (most <= LOG_FLUSH_BYTES) return this.#lines;
    this.#long = Buffer.allocUnsafeSlow(most);
    return this.#long;
  }

  commit(end: number): void {
    if (this.#long !== undefined) {
      const line = this.#long.subarray(0, end);
      this.#long = undefined;
      this.#send(line);
      return;
    }
    this.at = end;
    this.#timer ??= setTimeout(() => this.flush(), LOG_FLUSH_MS);
  }

  /** Sends what is collected, if anything. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.at === 0) return;
    const lines = this.#lines.subarray(0, this.at);
    this.at = 0;
    this.#send(lines);
  }
}

/** Milliseconds that an entry waits for others; the exporter of the main thread collects for longer. */
const EXPORT_FLUSH_MS = 200;
/** A batch of this size, or with this many entries, is sent at once. */
const EXPORT_FLUSH_BYTES = 64 * 1024;
const EXPORT_FLUSH_ENTRIES = 256;

/** The entries for one exporter. */
interface Batch {
  entries: Uint8Array[];
  bytes: number;
}

/** Collects spans and log records by exporter, so that a span does not cost a message between threads. */
export class ChunkBatches implements EntrySink {
  readonly #send: (exporter: string, chunk: Chunk) => void;
  readonly #batches = new Map<string, Batch>();
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (exporter: string, chunk: Chunk) => void) {
    this.#send = send;
  }

  /** Adds an encoded entry for the exporter with this `exporterKey`. */
  add(exporter: string, entry: Uint8Array): void {
    let batch = this.#batches.get(exporter);
    if (batch === undefined) {
      batch = { entries: [], bytes: 0 };
      this.#batches.set(exporter, batch);
    }
    batch.entries.push(entry);
    batch.bytes += entry.length;
    if (batch.bytes >= EXPORT_FLUSH_BYTES || batch.entries.length >= EXPORT_FLUSH_ENTRIES) this.#flush(exporter, batch);
    else this.#timer ??= setTimeout(() => this.flush(), EXPORT_FLUSH_MS);
  }

  /** Sends what is collected for all exporters. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [exporter, batch] of this.#batches) this.#flush(exporter, batch);
  }

  /** Deletes the batch instead of emptying it, because exporters come and go with configurations. */
  #flush(exporter: string, { entries }: Batch): void {
    this.#batches.delete(exporter);
    this.#send(exporter, encodeChunk(entries));
  }
}
