/**
 * Bulk data from a worker to the main thread: log lines, and spans and log records for exporters. A message per line would wake
 * both threads for every request, so entries are collected by time and size and sent together. A worker makes one `LogBatch`
 * and one `ChunkBatches`; the main thread holds the other side of each worker's `LogWindow`.
 */
import { type Chunk, type EntrySink, encodeChunk } from "../telemetry/otlp/messages.ts";

/** Milliseconds that a line waits for others: short enough for someone who follows the log. */
const LOG_FLUSH_MS = 50;
/**
 * A batch of this size is sent at once. Also its buffer, one per worker. A message wakes the main thread, which costs 0.2 ms when
 * it has nothing else to do: 1.3 µs for each line of a batch of 64 KiB, 0.4 µs of this one.
 */
const LOG_FLUSH_BYTES = 256 * 1024;
/** The most that a UTF-16 code unit takes in UTF-8; lengths are estimated by it, because counting bytes would cost a pass. */
const MAX_UTF8_BYTES_PER_CODE_UNIT = 3;

/**
 * Collects log lines, so that a line costs a copy of its bytes and not a message between threads. It collects bytes, not
 * strings: V8 would flatten a long concatenated string once more before cloning it.
 */
export class LogBatch {
  readonly #send: (lines: Uint8Array<ArrayBuffer>) => void;
  readonly #bytes = Buffer.allocUnsafeSlow(LOG_FLUSH_BYTES);
  #used = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `send` gets a copy, whose buffer it may transfer. */
  constructor(send: (lines: Uint8Array<ArrayBuffer>) => void) {
    this.#send = send;
  }

  /** Adds a line, which ends with its line break. A line that may not fit is sent by itself. */
  add(line: string): void {
    const mostBytes = line.length * MAX_UTF8_BYTES_PER_CODE_UNIT;
    if (this.#used + mostBytes > LOG_FLUSH_BYTES) this.flush();
    if (mostBytes > LOG_FLUSH_BYTES) {
      this.#send(new TextEncoder().encode(line));
      return;
    }
    this.#used += this.#bytes.write(line, this.#used);
    this.#timer ??= setTimeout(() => this.flush(), LOG_FLUSH_MS);
  }

  /** Sends what is collected, if anything. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#used === 0) return;
    const lines = new Uint8Array(this.#bytes.subarray(0, this.#used));
    this.#used = 0;
    this.#send(lines);
  }
}

/** Bytes of log lines of one worker that may be in flight to the main thread. */
const MAX_IN_FLIGHT = 4 * 1024 * 1024;

const LINE_FEED = 0x0a;

/** Cells of the shared memory: bytes in flight, and lines dropped since the main thread last read the number. */
const IN_FLIGHT = 0;
const DROPPED = 1;

/**
 * Bounds the log lines of one worker that the main thread has not received yet. Message queues between threads have no limit
 * of their own: while the main thread is blocked, for example on a slow disk, they would grow until the process is killed.
 * Lines beyond the limit are dropped and counted. Both threads make a window over the same memory.
 */
export class LogWindow {
  readonly memory: SharedArrayBuffer;
  readonly #cells: Int32Array;

  constructor(memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new Int32Array(memory);
  }

  // ── the worker's side ──

  /** Whether `lines` may be sent; they count as in flight then, otherwise as dropped. One batch always may, whatever its size. */
  admit(lines: Uint8Array): boolean {
    const inFlight = Atomics.load(this.#cells, IN_FLIGHT);
    if (inFlight === 0 || inFlight + lines.length <= MAX_IN_FLIGHT) {
      Atomics.add(this.#cells, IN_FLIGHT, lines.length);
      return true;
    }
    let count = 0;
    for (const byte of lines) if (byte === LINE_FEED) count++;
    Atomics.add(this.#cells, DROPPED, count);
    return false;
  }

  // ── the main thread's side ──

  /** Takes received `lines` out of the count. Returns how many lines were dropped since the last call. */
  received(lines: Uint8Array): number {
    Atomics.sub(this.#cells, IN_FLIGHT, lines.length);
    return Atomics.exchange(this.#cells, DROPPED, 0);
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

/** Collects spans and log records by exporter, so that a span costs no message of its own between threads. */
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
