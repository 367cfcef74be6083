import { frugal, holdsMore } from "../../net/frugality.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import type { FrameWriter } from "./frame-writer.ts";
import { DEFAULT_WINDOW, INITIAL_WINDOW_SIZE } from "./frames.ts";
import type { Http2Settings } from "./settings.ts";
import type { Http2Stream } from "./stream.ts";
import type { StreamTable } from "./stream-table.ts";

/**
 * A window grows if half of it is taken in fewer milliseconds than this: over a round trip of twice that time, it would limit the
 * peer. Over short round trips, a larger window saves both sides wake-ups.
 */
const FAST_MS = 50;
/** Bytes by which all windows of a thread together may grow: memory that peers may use beyond the announced windows. */
const GROWTH_LIMIT = 32 * 1024 * 1024;

/** Bytes that windows of this thread have grown by. */
let grown = 0;

/**
 * The receiving side of flow control (RFC 9113 5.2): what the peer may send, on all streams together and on each. Credit is returned
 * when half of a window has been taken, so that a WINDOW_UPDATE is worth its cost.
 *
 * The window of a stream whose bytes are taken fast doubles, up to `largestWindow`. The connection's window grows by the same amount,
 * so that this stream, if it stalls, leaves the others as much as before. The growth is taken back when the stream has ended.
 */
export class ReceiveFlow {
  readonly #writer: FrameWriter;
  readonly #settings: Http2Settings;
  readonly #announced: number;
  /** The connection's window: its size, what may arrive now, and what was taken since the last WINDOW_UPDATE. */
  #size: number;
  #window: number;
  #consumed = 0;
  /** Growth of ended streams, in bytes: the connection's window has to shrink by it, which only withheld credit can do. */
  #surplus = 0;

  #settled = false;
  /** Bytes that were added to the windows of streams that the peer may have opened before it saw our SETTINGS; 0 = to no stream. */
  #leeway = 0;
  readonly #streams: StreamTable;
  readonly #acks: Acknowledgements;
  /** What a new stream may receive at first. */
  streamWindow: number;
  /** Streams that were open when the windows shrank, until the peer acknowledges that. */
  #reduced: readonly Http2Stream[] = [];

  /** Announces the window of the connection; that of streams is part of SETTINGS. */
  constructor(writer: FrameWriter, settings: Http2Settings, streams: StreamTable, acks: Acknowledgements) {
    const more = settings.connectionWindow - DEFAULT_WINDOW;
    this.#writer = writer;
    this.#settings = settings;
    this.#streams = streams;
    this.#acks = acks;
    this.streamWindow = settings.streamWindow;
    this.#announced = Math.max(settings.connectionWindow, DEFAULT_WINDOW);
    this.#size = this.#announced;
    this.#window = this.#announced;
    if (more > 0) writer.windowUpdate(0, more);
  }

  /** `bytes` have arrived. False: the connection's window does not allow them. */
  receive(bytes: number): boolean {
    this.#window -= bytes;
    holdsMore(bytes);
    if (frugal && this.streamWindow > this.#settings.frugalWindow) this.#reduce();
    return this.#window >= 0;
  }

  /** `bytes` of the connection's window were taken or dropped: the peer may send as many again. */
  credit(bytes: number): void {
    this.#consumed += bytes;
    holdsMore(-bytes);
    if (this.#surplus > 0) this.#shrink();
    // Not half of its current size: a stalled stream may occupy all growth, and the others need credit for the rest.
    if (this.#consumed < this.#announced / 2) return;
    this.#grant(this.#consumed);
    this.#consumed = 0;
  }

  /** The peer opens a stream. Until it has seen our SETTINGS, it may use the default window (RFC 9113 6.9.3). */
  begin(stream: Http2Stream): void {
    if (this.#settled) return;
    this.#leeway = Math.max(0, DEFAULT_WINDOW - this.#settings.streamWindow);
    stream.receiveWindow += this.#leeway;
  }

  /** The peer has acknowledged our SETTINGS: windows of streams that were open then are smaller from now on. */
  settle(): void {
    if (!this.#settled) {
      this.#settled = true;
      if (this.#leeway > 0) for (const stream of this.#streams.all()) stream.receiveWindow -= this.#leeway;
      return;
    }
    for (const stream of this.#reduced) stream.receiveWindow -= this.#settings.streamWindow - this.streamWindow;
    this.#reduced = [];
  }

  /**
   * Shrinks the windows that were announced while there was enough memory, also those of open streams (RFC 9113 6.9.2): bytes that
   * readers do not take would fill them. The peer learns of it before it sends on later streams.
   */
  #reduce(): void {
    const { frugalWindow } = this.#settings;
    const difference = this.streamWindow - frugalWindow;
    this.streamWindow = frugalWindow;
    this.#acks.settingsSent();
    this.#writer.settings([[INITIAL_WINDOW_SIZE, frugalWindow]]);
    this.#reduced = this.#streams.all();
    for (const stream of this.#reduced) {
      stream.windowSize -= difference;
      // A stream whose window is below 0 now may receive nothing more, so nothing else would return its credit.
      this.creditStream(stream, 0);
    }
  }

  /** As `credit`, for the window of a stream. */
  creditStream(stream: Http2Stream, bytes: number): void {
    stream.consumed += bytes;
    if (stream.consumed < stream.windowSize / 2) return;
    const increment = stream.consumed + this.#grow(stream);
    this.#writer.windowUpdate(stream.id, increment);
    stream.receiveWindow += increment;
    stream.consumed = 0;
  }

  /** The stream is over: takes back what its window has grown by. */
  forget(stream: Http2Stream): void {
    this.#surplus += stream.windowSize - this.streamWindow;
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
