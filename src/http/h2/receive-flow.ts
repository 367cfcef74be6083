import type { FrameWriter } from "./frame-writer.ts";
import { DEFAULT_WINDOW } from "./frames.ts";
import type { Http2Settings } from "./settings.ts";
import type { Http2Stream } from "./stream.ts";

/**
 * The receiving side of flow control (RFC 9113 5.2): what the peer may send, on all streams together and on each. Credit goes back
 * when half of a window has been taken, so that a WINDOW_UPDATE pays.
 */
export class ReceiveFlow {
  readonly #writer: FrameWriter;
  readonly #settings: Http2Settings;
  /** Of the connection: what may come, and what was taken since its last WINDOW_UPDATE. */
  #window: number;
  #consumed = 0;

  /** Announces the window of the connection; that of streams is part of SETTINGS. */
  constructor(writer: FrameWriter, settings: Http2Settings) {
    const more = settings.connectionWindow - DEFAULT_WINDOW;
    this.#writer = writer;
    this.#settings = settings;
    this.#window = Math.max(settings.connectionWindow, DEFAULT_WINDOW);
    if (more > 0) writer.windowUpdate(0, more);
  }

  /** `bytes` have come. False: the connection's window does not allow them. */
  receive(bytes: number): boolean {
    this.#window -= bytes;
    return this.#window >= 0;
  }

  /** So many bytes of the connection's window were taken, or dropped, and may come anew. */
  credit(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed < this.#settings.connectionWindow / 2) return;
    this.#writer.windowUpdate(0, this.#consumed);
    this.#window += this.#consumed;
    this.#consumed = 0;
  }

  /** The same for the window of a stream. */
  creditStream(stream: Http2Stream, bytes: number): void {
    stream.consumed += bytes;
    if (stream.consumed < this.#settings.streamWindow / 2) return;
    this.#writer.windowUpdate(stream.id, stream.consumed);
    stream.receiveWindow += stream.consumed;
    stream.consumed = 0;
  }
}
