import type { EntrySink } from "../telemetry/otlp/entry-sink.ts";
import { type Chunk, encodeChunk } from "../telemetry/otlp/messages.ts";

/** Entries wait this long for others before they go to the main thread together. */
const FLUSH_MS = 200;
/** What goes at once. */
const FLUSH_BYTES = 64 * 1024;
const FLUSH_ENTRIES = 256;

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
    if (batch.bytes >= FLUSH_BYTES || batch.entries.length >= FLUSH_ENTRIES) this.#flush(exporter, batch);
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS);
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
