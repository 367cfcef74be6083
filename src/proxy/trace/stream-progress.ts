/** Events about the progress of traced streams that last. */
import type { TraceMessage } from "../../trace/events.ts";
import type { TraceSink } from "../../trace/tracer.ts";

/** Milliseconds between checks of a long-lived stream. */
const EVERY_MS = 1000;

type Traffic = Extract<TraceMessage, { readonly type: "streamProgress" }>["received"];

/**
 * Reports the progress of a traced, long-lived stream: a long response body, a WebSocket, a TCP connection. Once a second, an event
 * reports the amount in each direction if anything has moved; for a silent stream, after one second of silence, then two, four and
 * so on. Exists only while the stream is traced.
 */
export class StreamProgress {
  readonly #sink: TraceSink;
  readonly #now: () => number;
  #received: Traffic = { chunks: 0, bytes: 0 };
  #sent: Traffic = { chunks: 0, bytes: 0 };
  #timer: NodeJS.Timeout | undefined;
  #movedAt: number;
  #moved = false;
  /** Milliseconds of silence at which the next event is due. */
  #nextIdle = EVERY_MS;
  #longestIdle = 0;
  /** An event has been emitted, so the last one is too. */
  #reported = false;

  /** `now` in milliseconds. */
  constructor(sink: TraceSink, now: () => number = () => performance.now()) {
    this.#sink = sink;
    this.#now = now;
    this.#movedAt = now();
  }

  /** The stream is open in both directions. */
  begin(): void {
    this.#timer ??= setInterval(() => this.#look(), EVERY_MS).unref();
  }

  /** A read of `length` bytes from the client was passed on. */
  received({ length }: { readonly length: number }): void {
    this.#received = { chunks: this.#received.chunks + 1, bytes: this.#received.bytes + length };
    this.#note();
  }

  /** A read of `length` bytes from the backend was passed on. */
  sent({ length }: { readonly length: number }): void {
    this.#sent = { chunks: this.#sent.chunks + 1, bytes: this.#sent.bytes + length };
    this.#note();
  }

  /** The stream is over: reports what has moved since the last event. */
  end(): void {
    clearInterval(this.#timer);
    if (this.#reported) this.#emit();
    this.#reported = false;
  }

  #note(): void {
    const now = this.#now();
    this.#longestIdle = Math.max(this.#longestIdle, now - this.#movedAt);
    this.#movedAt = now;
    this.#moved = true;
    this.#nextIdle = EVERY_MS;
  }

  #look(): void {
    const idle = this.#now() - this.#movedAt;
    if (!this.#moved && idle < this.#nextIdle) return;
    if (idle >= this.#nextIdle) this.#nextIdle = 2 * idle;
    this.#moved = false;
    this.#emit();
  }

  #emit(): void {
    this.#reported = true;
    const idle = this.#now() - this.#movedAt;
    this.#sink.emit("info", {
      type: "streamProgress",
      received: this.#received,
      sent: this.#sent,
      idle: seconds(idle),
      longestIdle: seconds(Math.max(idle, this.#longestIdle)),
    });
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)}s`;
}
