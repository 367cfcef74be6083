import { type Chunk, type EntrySink, encodeChunk } from "../telemetry/otlp/messages.ts";

/** Lines wait this long for others before they go to the main thread together. */
const LOG_FLUSH_MS = 50;
/** Bytes that go at once. */
const LOG_FLUSH_BYTES = 64 * 1024;
/** UTF-8 needs no more for a unit of UTF-16. */
const MAX_UTF8_BYTES_PER_CODE_UNIT = 3;

/**
 * Collects log lines so that a line costs a copy of its bytes and not a message between threads. They are bytes because a
 * long text of many parts would have to be put together once more before it is sent.
 */
export class LogBatch {
  readonly #send: (lines: Uint8Array<ArrayBuffer>) => void;
  readonly #bytes = Buffer.allocUnsafeSlow(LOG_FLUSH_BYTES);
  #used = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `send` may keep the bytes, and their buffer. */
  constructor(send: (lines: Uint8Array<ArrayBuffer>) => void) {
    this.#send = send;
  }

  /** `line` with its line break. */
  add(line: string): void {
    const most = line.length * MAX_UTF8_BYTES_PER_CODE_UNIT;
    if (this.#used + most > LOG_FLUSH_BYTES) this.flush();
    if (most > LOG_FLUSH_BYTES) {
      this.#send(new TextEncoder().encode(line));
      return;
    }
    this.#used += this.#bytes.write(line, this.#used);
    this.#timer ??= setTimeout(() => this.flush(), LOG_FLUSH_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#used === 0) return;
    const lines = new Uint8Array(this.#bytes.subarray(0, this.#used));
    this.#used = 0;
    this.#send(lines);
  }
}

/** Bytes of log lines that a worker may have on their way to the main thread. */
const MAX_WAITING = 4 * 1024 * 1024;

const LINE_FEED = 0x0a;

/** Indexes of the shared numbers. */
const WAITING = 0;
const DROPPED = 1;

/**
 * Bounds the log lines of one worker that the main thread has not taken yet: when it is busy or blocked, the messages to it
 * would grow without end. Worker and main thread share its memory.
 */
export class LogWindow {
  readonly memory: SharedArrayBuffer;
  readonly #cells: Int32Array;

  constructor(memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new Int32Array(memory);
  }

  // ── the worker's side ──

  /** Whether there is room for `lines`. If so they count as on their way, otherwise as dropped. */
  admit(lines: Uint8Array): boolean {
    const waiting = Atomics.load(this.#cells, WAITING);
    if (waiting === 0 || waiting + lines.length <= MAX_WAITING) {
      Atomics.add(this.#cells, WAITING, lines.length);
      return true;
    }
    let count = 0;
    for (const byte of lines) if (byte === LINE_FEED) count++;
    Atomics.add(this.#cells, DROPPED, count);
    return false;
  }

  // ── the main thread's side ──

  /** `lines` have arrived. Returns how many lines were dropped since the last call. */
  arrived(lines: Uint8Array): number {
    Atomics.sub(this.#cells, WAITING, lines.length);
    return Atomics.exchange(this.#cells, DROPPED, 0);
  }
}

/** Entries wait this long for others before they go to the main thread together. */
const EXPORT_FLUSH_MS = 200;
/** What goes at once. */
const EXPORT_FLUSH_BYTES = 64 * 1024;
const EXPORT_FLUSH_ENTRIES = 256;

interface Batch {
  entries: Uint8Array[];
  bytes: number;
}

/** Collects what a thread wants exported, so that a span costs no message of its own between threads. */
export class ChunkBatches implements EntrySink {
  readonly #send: (exporter: string, chunk: Chunk) => void;
  readonly #batches = new Map<string, Batch>();
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (exporter: string, chunk: Chunk) => void) {
    this.#send = send;
  }

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

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [exporter, batch] of this.#batches) this.#flush(exporter, batch);
  }

  /** Exporters come and go with configurations: none is kept while it has nothing. */
  #flush(exporter: string, { entries }: Batch): void {
    this.#batches.delete(exporter);
    this.#send(exporter, encodeChunk(entries));
  }
}
