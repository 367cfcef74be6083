import { type FrameWriter, SENT_FRAME_SIZE } from "./frame-writer.ts";
import { DEFAULT_WINDOW } from "./frames.ts";
import { IdMap } from "./id-map.ts";
import type { Priority } from "./priority.ts";
import { SendQueue } from "./send-queue.ts";
import type { Http2Stream } from "./stream.ts";

/** Bytes of one stream that are sent before the next stream has its turn. */
const TURN_BYTES = 16 * 1024;

/** Frames below this size that a window has cut short are not useful work: tiny credits provoke them (CVE-2019-9511). Bytes. */
const USEFUL_FRAME = 1024;

/**
 * The sending side of flow control (RFC 9113 5.2): sends data as far as the windows of its stream and of the connection allow and the
 * socket accepts it. A stream keeps what cannot be sent yet, and streams take turns.
 */
export class SendFlow {
  readonly #writer: FrameWriter;
  readonly #queue = new SendQueue<Http2Stream>();
  readonly #waitForRoom = new IdMap<Http2Stream>();
  #pumping = false;
  /** Bytes that we may send on all streams together. */
  window = DEFAULT_WINDOW;
  /** Counts the DATA frames sent, without tiny ones that a window has cut short. */
  frames = 0;

  constructor(writer: FrameWriter) {
    this.#writer = writer;
  }

  /** Sends as much of `buffer[from, to)` as possible; returns where it stopped. Streams that wait go first. */
  write(stream: Http2Stream, buffer: Buffer, from: number, to: number): number {
    if (!this.#pumping && this.#queue.size > 0) return from;
    const writer = this.#writer;
    let at = from;
    while (at < to && !writer.congested) {
      const length = Math.min(to - at, this.window, stream.sendWindow, SENT_FRAME_SIZE);
      if (length <= 0) break;
      if (length >= USEFUL_FRAME || length === to - at) this.frames++;
      this.window -= length;
      stream.sendWindow -= length;
      writer.data(stream.id, buffer, at, at + length);
      at += length;
    }
    return at;
  }

  /** The stream keeps data and gets a turn when the connection can send. Does nothing while the stream's own window is closed. */
  waitForTurn(stream: Http2Stream): void {
    if (stream.hasKept && stream.sendWindow > 0 && !stream.over) this.#queue.add(stream);
  }

  /** The peer has changed the priority of a stream. */
  reprioritize(stream: Http2Stream, { urgency, incremental }: Priority): void {
    // In its current place in the queue, more urgent streams may never leave it a turn.
    this.#queue.remove(stream);
    stream.setPriority(urgency, incremental);
    this.waitForTurn(stream);
  }

  /** The stream's sender waits for `onWritable`. */
  waitForRoom(stream: Http2Stream): void {
    this.#waitForRoom.set(stream);
  }

  /**
   * The stream is over. It leaves the queue too: a peer that keeps the connection's window closed and resets its streams would fill the
   * memory with them.
   */
  forget(stream: Http2Stream): void {
    this.#queue.remove(stream);
    this.#waitForRoom.delete(stream.id);
  }

  /** A window has opened or the socket accepts more: sends what is kept, stream by stream, then lets senders continue. */
  pump(): void {
    if (this.#pumping) return;
    const writer = this.#writer;
    this.#pumping = true;
    while (!writer.congested && this.window > 0) {
      const stream = this.#queue.take();
      if (stream === undefined) break;
      stream.sendQueued(TURN_BYTES);
      if (stream.hasKept && stream.sendWindow > 0 && !stream.over) this.#queue.add(stream, true);
    }
    this.#pumping = false;
    if (this.#waitForRoom.size === 0) return;
    for (const stream of this.#waitForRoom.values()) {
      if (writer.congested) break;
      // Deleted before the call, because the sender may begin to wait again in it.
      this.#waitForRoom.delete(stream.id);
      if (!stream.offerRoom()) this.#waitForRoom.set(stream);
    }
  }

  close(): void {
    this.#waitForRoom.clear();
  }
}
