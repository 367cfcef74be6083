import type { Chunk } from "./messages.ts";

/** The result of one export request. */
export type SendOutcome =
  /** Accepted, except `rejected` entries. */
  | { readonly type: "taken"; readonly rejected: number; readonly message: string }
  /** A temporary failure: retry after `waitMs` if the collector gave it. */
  | { readonly type: "later"; readonly waitMs: number | undefined; readonly message: string }
  | { readonly type: "rejected"; readonly message: string };

/** Sends chunks as one request; never rejects. Must end soon after `gone` aborts. */
export type Send = (chunks: readonly Chunk[], gone: AbortSignal) => Promise<SendOutcome>;

/** Why entries were dropped. */
const DROP_REASONS = ["queue_full", "failed", "rejected", "shutdown"] as const;
type DropReason = (typeof DROP_REASONS)[number];

/** Totals since the start. */
export interface ExportCounts {
  exported: number;
  readonly dropped: Record<DropReason, number>;
}

/** Reports when exports start to fail and when they recover. */
interface ExportReports {
  failing(message: string): void;
  working(dropped: number): void;
  /** The shutdown has left these behind: no scrape will see them counted. */
  lost(entries: number): void;
}

/** Limits of the queue, so that an unreachable collector costs bounded memory. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_ENTRIES = 8192;
/** Limits of one request: collectors reject gRPC messages over 4 MiB by default. */
const REQUEST_BYTES = 1024 * 1024;
const REQUEST_ENTRIES = 512;
/** Milliseconds between attempts with the same entries; doubles each time, with jitter (OTLP specification, "Failures"). */
const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 30_000;
const MAX_ATTEMPTS = 6;
/** The same during shutdown, whose deadline ends the attempts. */
const CLOSING_WAIT_MS = 100;
/** A shutdown waits no longer than this for a collector that has been failing, or it would take the whole deadline for nothing. */
const FAILING_CLOSE_MS = 1000;

/**
 * Queues spans or log records for one collector: one request at a time, with retries of temporary failures. In: chunks from
 * workers. Out: export requests, counts of what was exported and dropped, and reports of outages.
 */
export class ExportQueue {
  readonly #send: Send;
  readonly #counts: ExportCounts;
  readonly #reports: ExportReports;
  readonly #random: () => number;
  readonly #gone = new AbortController();
  readonly #waiting: Chunk[] = [];
  #bytes = 0;
  #entries = 0;
  #running: Promise<void> | undefined;
  #failing = false;
  #droppedWhileFailing = 0;
  #closing = false;
  #wake: (() => void) | undefined;

  /** Adds to `counts`; `random` is uniform in [0, 1). */
  constructor(send: Send, counts: ExportCounts, reports: ExportReports, random: () => number = Math.random) {
    this.#send = send;
    this.#counts = counts;
    this.#reports = reports;
    this.#random = random;
  }

  /** If the queue is full the new chunk is dropped: the oldest is already being sent. */
  add(chunk: Chunk): void {
    if (this.#gone.signal.aborted) this.#drop("shutdown", chunk.count);
    else if (this.#entries + chunk.count > MAX_ENTRIES || this.#bytes + chunk.bytes.length > MAX_BYTES)
      this.#drop("queue_full", chunk.count);
    else {
      this.#waiting.push(chunk);
      this.#bytes += chunk.bytes.length;
      this.#entries += chunk.count;
      this.#running ??= this.#run();
    }
  }

  /** Sends the queue for at most `deadlineMs`, and for a second if the collector has been failing; then drops the rest. */
  async close(deadlineMs: number): Promise<void> {
    this.#closing = true;
    this.#wake?.();
    const timeout = this.#failing ? Math.min(FAILING_CLOSE_MS, deadlineMs) : deadlineMs;
    const timer = setTimeout(() => this.#gone.abort(), timeout);
    await this.#running;
    clearTimeout(timer);
    this.#gone.abort();
    const lost = this.#counts.dropped.shutdown;
    if (lost > 0) this.#reports.lost(lost);
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const chunks = this.#take();
      if (this.#gone.signal.aborted) this.#drop("shutdown", countOf(chunks));
      else await this.#deliver(chunks);
    }
    this.#running = undefined;
  }

  /** As many chunks as fit one request, at least one. */
  #take(): Chunk[] {
    let bytes = 0;
    let entries = 0;
    let taken = 0;
    for (const chunk of this.#waiting) {
      if (taken > 0 && (entries + chunk.count > REQUEST_ENTRIES || bytes + chunk.bytes.length > REQUEST_BYTES)) break;
      bytes += chunk.bytes.length;
      entries += chunk.count;
      taken++;
    }
    this.#bytes -= bytes;
    this.#entries -= entries;
    return this.#waiting.splice(0, taken);
  }

  async #deliver(chunks: readonly Chunk[]): Promise<void> {
    const entries = countOf(chunks);
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#send(chunks, this.#gone.signal);
      if (this.#gone.signal.aborted && outcome.type !== "taken") {
        this.#drop("shutdown", entries);
        return;
      }
      if (outcome.type === "taken") {
        const rejected = Math.min(outcome.rejected, entries);
        this.#counts.exported += entries - rejected;
        this.#drop("rejected", rejected);
        if (rejected > 0) this.#fail(`the collector rejected ${rejected} of ${entries} entries: ${outcome.message}`);
        else this.#succeed();
        return;
      }
      this.#fail(outcome.message);
      if (outcome.type === "rejected" || attempt >= MAX_ATTEMPTS) {
        this.#drop(outcome.type === "rejected" ? "rejected" : "failed", entries);
        return;
      }
      await this.#pause(Math.min(MAX_WAIT_MS, outcome.waitMs ?? this.#backoff(attempt)));
    }
  }

  #backoff(attempt: number): number {
    return FIRST_WAIT_MS * 2 ** (attempt - 1) * (0.5 + this.#random() / 2);
  }

  /** During shutdown the next attempt follows soon, until the deadline. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#gone.signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, this.#closing ? Math.min(ms, CLOSING_WAIT_MS) : ms);
      this.#wake = done;
      this.#gone.signal.addEventListener("abort", done);
    });
  }

  #fail(message: string): void {
    if (this.#failing) return;
    this.#failing = true;
    this.#reports.failing(message);
  }

  #succeed(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#reports.working(this.#droppedWhileFailing);
    this.#droppedWhileFailing = 0;
  }

  #drop(reason: DropReason, count: number): void {
    this.#counts.dropped[reason] += count;
    if (this.#failing) this.#droppedWhileFailing += count;
  }
}

function countOf(chunks: readonly Chunk[]): number {
  return chunks.reduce((sum, { count }) => sum + count, 0);
}
