import { frugal, holdsMore } from "../../net/frugality.ts";
import type { FrameWriter } from "./frame-writer.ts";
import { DEFAULT_WINDOW } from "./frames.ts";
import type { Http2Settings } from "./settings.ts";
import type { Http2Stream } from "./stream.ts";

/**
 * Half of a window that was taken in less milliseconds would not last for a round trip of twice that time: the window would limit
 * the peer, so it grows. On short ways a larger window spares both sides wake-ups.
 */
const FAST_MS = 50;
/** Bytes that all windows of a thread together may have grown by: what peers may leave here on top of what was announced. */
const GROWTH_LIMIT = 32 * 1024 * 1024;

/** Bytes that windows of this thread have grown by. */
let grown = 0;

/**
 * The receiving side of flow control (RFC 9113 5.2): what the peer may send, on all streams together and on each. Credit goes back
 * when half of a window has been taken, so that a WINDOW_UPDATE pays.
 *
 * The window of a stream whose bytes are taken fast doubles up to `largestWindow`, and that of the connection grows with it, so that a
 * stream that stands still then holds up the others no sooner. What it has grown by is taken back when the stream has ended.
 */
export class ReceiveFlow {
  readonly #writer: FrameWriter;
  readonly #settings: Http2Settings;
  readonly #announced: number;
  /** Of the connection: its size, what may come now, and what was taken since the last WINDOW_UPDATE. */
  #size: number;
  #window: number;
  #consumed = 0;
  /** Of streams that have ended: bytes by which the connection's window is to shrink, which only withheld credit can do. */
  #surplus = 0;

  /** Announces the window of the connection; that of streams is part of SETTINGS. */
  constructor(writer: FrameWriter, settings: Http2Settings) {
    const more = settings.connectionWindow - DEFAULT_WINDOW;
    this.#writer = writer;
    this.#settings = settings;
    this.#announced = Math.max(settings.connectionWindow, DEFAULT_WINDOW);
    this.#size = this.#announced;
    this.#window = this.#announced;
    if (more > 0) writer.windowUpdate(0, more);
  }

  /** `bytes` have come. False: the connection's window does not allow them. */
  receive(bytes: number): boolean {
    this.#window -= bytes;
    holdsMore(bytes);
    return this.#window >= 0;
  }

  /** So many bytes of the connection's window were taken, or dropped, and may come anew. */
  credit(bytes: number): void {
    this.#consumed += bytes;
    holdsMore(-bytes);
    if (this.#surplus > 0) this.#shrink();
    // Not half of what it has grown to: a stream that stands still may hold all that, and the others need the rest.
    if (this.#consumed < this.#announced / 2) return;
    this.#grant(this.#consumed);
    this.#consumed = 0;
  }

  /** The same for the window of a stream. */
  creditStream(stream: Http2Stream, bytes: number): void {
    stream.consumed += bytes;
    if (stream.consumed < stream.windowSize / 2) return;
    const increment = stream.consumed + this.#grow(stream);
    this.#writer.windowUpdate(stream.id, increment);
    stream.receiveWindow += increment;
    stream.consumed = 0;
  }

  /** Takes back what the window of a stream has grown by that is over. */
  forget(stream: Http2Stream): void {
    this.#surplus += stream.windowSize - this.#settings.streamWindow;
    if (this.#surplus > 0) this.#shrink();
  }

  /** The connection has ended. */
  close(): void {
    holdsMore(this.#window + this.#consumed - this.#size);
    grown -= this.#size - this.#announced;
    this.#size = this.#announced;
    this.#window = this.#announced;
    this.#consumed = 0;
    this.#surplus = 0;
  }

  #grant(bytes: number): void {
    this.#writer.windowUpdate(0, bytes);
    this.#window += bytes;
  }

  /** Called with each WINDOW_UPDATE of a stream; returns by how much its window grows. */
  #grow(stream: Http2Stream): number {
    const size = stream.windowSize;
    const more = Math.min(size, this.#settings.largestWindow - size);
    if (more <= 0) return 0;
    const now = performance.now();
    const fast = now - stream.creditedAt < FAST_MS;
    stream.creditedAt = now;
    if (!fast || frugal || grown + more > GROWTH_LIMIT) return 0;
    grown += more;
    stream.windowSize += more;
    this.#size += more;
    this.#grant(more);
    return more;
  }

  #shrink(): void {
    const bytes = Math.min(this.#surplus, this.#consumed);
    this.#consumed -= bytes;
    this.#surplus -= bytes;
    this.#size -= bytes;
    grown -= bytes;
  }
}
