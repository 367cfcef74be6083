import { ChunkedDecoder } from "../h1/chunked.ts";
import type { RequestHead } from "../h1/parse-head.ts";
import type { HeaderList } from "../message.ts";
import { UNKNOWN_LENGTH } from "../stream.ts";

/** Bytes of a request body that are read and discarded after an early response: cheaper than a new connection. */
const DISCARD_BYTES = 64 * 1024;
/** Milliseconds before `minBodyRate` applies: TCP slow start and a busy client may stall a body that is fine. */
const RATE_GRACE_MS = 10_000;
const NO_HEADERS: HeaderList = [];

/**
 * Removes the framing from request bodies (RFC 9112 6), one after another, and measures their rate: a body that trickles in
 * ("R-U-Dead-Yet") would hold a connection and its upstream for as long as the client likes.
 */
export class BodyReader {
  #decoder: ChunkedDecoder | undefined;
  #chunked = false;
  #left = 0;
  /** The stream reads the body. */
  open = false;
  /** Bytes so far, without framing. */
  received = 0;
  /** `performance.now()` ms from which the rate is measured, moved by the time that the body was paused. */
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
