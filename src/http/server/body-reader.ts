import { ChunkedDecoder } from "../h1/chunked.ts";
import type { RequestHead } from "../h1/parse-head.ts";
import type { HeaderList } from "../message.ts";
import { UNKNOWN_LENGTH } from "../stream.ts";

/** A request body up to this is read and thrown away after an answer that did not need it, to keep the connection. */
const DISCARD_BYTES = 64 * 1024;
/** A client gets this long before `minBodyRate` is asked of it. */
const RATE_GRACE_MS = 10_000;
const NO_HEADERS: HeaderList = [];

/** Takes the body of one request after another out of its framing, and watches how fast it comes. */
export class BodyReader {
  #decoder: ChunkedDecoder | undefined;
  #chunked = false;
  #left = 0;
  /** Somebody takes the body. */
  open = false;
  /** Bytes so far, without framing. */
  received = 0;
  /** `performance.now()` ms from which the rate is measured, moved by the times when nobody took the body. */
  #since = 0;
  #pausedAt = 0;

  /** Returns the length: UNKNOWN_LENGTH for a chunked body, 0 for none. */
  begin(head: RequestHead): number {
    this.open = false;
    this.received = 0;
    this.#pausedAt = 0;
    this.#chunked = head.chunked;
    if (head.chunked) {
      this.#decoder ??= new ChunkedDecoder();
      this.#decoder.reset(head.rawNames !== null);
      return UNKNOWN_LENGTH;
    }
    this.#left = Math.max(0, head.contentLength);
    return this.#left;
  }

  /** Hands `buffer[at, end)` to `sink` as far as it is body. Returns where it stopped, -1 when the framing is broken. */
  read(buffer: Buffer, at: number, end: number, sink: { onBody(b: Buffer, from: number, to: number): void }): number {
    if (this.#chunked) return (this.#decoder as ChunkedDecoder).push(buffer, at, end, sink);
    const to = Math.min(end, at + this.#left);
    this.#left -= to - at;
    sink.onBody(buffer, at, to);
    return to;
  }

  get done(): boolean {
    return this.#chunked ? (this.#decoder as ChunkedDecoder).done : this.#left === 0;
  }

  get trailers(): HeaderList {
    return this.#chunked ? (this.#decoder as ChunkedDecoder).trailers : NO_HEADERS;
  }

  /** What is wrong with the framing. */
  get error(): string {
    return this.#decoder?.error ?? "";
  }

  /** Whether the rest is small and sure to come, so that reading it is cheaper than another connection. */
  get discardable(): boolean {
    // A chunked body may go on without end.
    return !this.#chunked && this.#left <= DISCARD_BYTES;
  }

  // ── pace ──

  get paused(): boolean {
    return this.#pausedAt !== 0;
  }

  start(): void {
    this.open = true;
    this.#since = performance.now();
  }

  pause(): void {
    if (this.#pausedAt === 0) this.#pausedAt = performance.now();
  }

  resume(): void {
    this.#since += performance.now() - this.#pausedAt;
    this.#pausedAt = 0;
  }

  /** Whether a client that could send has sent less than `minRate` bytes per second. */
  tooSlow(now: number, minRate: number): boolean {
    if (!this.open || this.#pausedAt !== 0 || minRate === 0) return false;
    const elapsed = now - this.#since - RATE_GRACE_MS;
    return elapsed > 0 && this.received * 1000 < minRate * elapsed;
  }
}
