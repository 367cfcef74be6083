import { queueLimit } from "../pace.ts";
import { PROTOCOL_ERROR } from "./frames.ts";
import type { FieldSection } from "./hpack/decoder.ts";
import { PieceQueue } from "./piece-queue.ts";
import type { Sender } from "./send-queue.ts";

const NO_FIELDS: readonly string[] = [];

/** What a stream uses of its connection. */
export interface StreamLink {
  /** The socket's buffers are full. */
  readonly congested: boolean;
  writeHeaders(stream: Http2Stream, pseudo: readonly string[], fields: readonly string[], endStream: boolean): void;
  /** Sends as much of `buffer[from, to)` as windows and socket allow now; returns where it stopped. */
  writeData(stream: Http2Stream, buffer: Buffer, from: number, to: number): number;
  writeEndStream(stream: Http2Stream): void;
  writeReset(stream: Http2Stream, code: number): void;
  /** The stream keeps data: `sendQueued` follows when it is its turn. */
  waitForTurn(stream: Http2Stream): void;
  /** The sender of the stream waits for `onWritable`. */
  waitForRoom(stream: Http2Stream): void;
  /** `bytes` of the stream were taken: the peer may send as many again. */
  credit(stream: Http2Stream, bytes: number): void;
  /** Both halves have ended, or it was reset. */
  leave(stream: Http2Stream): void;
  onStreamFault(stream: Http2Stream, error: unknown): void;
  /** The role has reset a stream because of what the peer sent. Called after the stream has left. */
  onPeerAtFault(): void;
}

/**
 * One stream, in either role: its states (RFC 9113 5.1), its part of flow control, and its two buffers. Bytes to send are *kept* while
 * the peer takes none; bytes received are *held* while the reader takes none. Each role extends it and gives the events their meaning.
 * An exception in an event resets this stream only.
 */
export abstract class Http2Stream implements Sender {
  /** 0 until the stream is open. */
  id = 0;
  /** After `onReset`: the peer did not process the stream (RFC 9113 8.7), or never received it. */
  refused = false;
  /** If we opened the stream: `FrameWriter.writes` when its head was written. */
  openedAt = -1;
  /** After `onReset`: the code of the peer's RST_STREAM; undefined if something else ended the stream. */
  resetByPeer: number | undefined;
  urgency = 3;
  /** Without a priority signal, streams share turns. */
  incremental = true;
  /** PRIORITY_UPDATE set the priority before the head arrived; the Priority field of the head is ignored then. */
  prioritized = false;
  queued = false;
  /** Our half has ended; what is kept is still sent. */
  localEnded = false;
  /** The peer's half has ended. */
  peerEnded = false;
  /** Nothing more can be sent or received. */
  over = false;
  /** Bytes that we may send; below 0 after the peer has shrunk its windows (RFC 9113 6.9.2). */
  sendWindow = 0;
  /** Bytes that the peer may send. */
  receiveWindow = 0;
  /** The full size of `receiveWindow`, when everything received was taken; grows (receive-flow.ts). */
  windowSize = 0;
  /** `performance.now()` ms of the last WINDOW_UPDATE of the stream, while its window may grow. */
  creditedAt = 0;
  /** Bytes taken since the last WINDOW_UPDATE of the stream. */
  consumed = 0;
  /** Bytes received and not taken yet. */
  uncredited = 0;
  #touched = false;
  #link: StreamLink | undefined;
  /** This queue and `#held` are created when data has to wait: most streams never need them. */
  #kept: PieceQueue | undefined;
  /** Our half ends behind what is kept, with these trailers. */
  #keptEnd: readonly string[] | undefined;
  #paused = false;
  #held: PieceQueue | undefined;
  /** Trailers that arrived behind data that is held. */
  #heldTrailers: FieldSection | undefined;
  #endHeld = false;
  /** The code of the RST_STREAM that follows the end of our half. */
  #resetAfterEnd: number | undefined;
  #silent = false;
  /** `onStopped` follows, or has followed. */
  #stopped = false;
  #delivering = false;

  // ── events, for the role ──

  /**
   * A field section: a head, an interim head or trailers. The role checks `malformed` and `tooLarge`, and may keep the list of fields.
   */
  abstract onHeaders(section: FieldSection, endStream: boolean): void;
  /** `buffer[from, to)` is valid during the call only. Not while paused. */
  abstract onData(buffer: Buffer, from: number, to: number): void;
  /** The peer's half has ended, and all of its data has been handed over. */
  abstract onEnd(): void;
  /** All data of one read has been handed over: a good moment to send what was gathered. Not after `onEnd`. */
  abstract onBatch(): void;
  /** The stream has ended before both halves were complete. No event follows. `code`: of RST_STREAM or GOAWAY. */
  abstract onReset(code: number, message: string): void;
  /** The peer has ended its own half and accepts no more of ours. Comes after `onEnd`. No event follows. */
  onStopped(): void {}
  /** After `sendData` returned false: there is room again. */
  abstract onWritable(): void;
  /** An event has thrown, which is a defect of the gateway; the stream has been reset. No event follows. */
  abstract onFault(error: unknown): void;

  // ── calls of the role ──

  /** Sends a field section. Does nothing once the stream is over. */
  sendHeaders(pseudo: readonly string[], fields: readonly string[], endStream: boolean): void {
    if (this.over || this.localEnded) return;
    this.#link?.writeHeaders(this, pseudo, fields, endStream);
    if (endStream) this.#endLocal();
  }

  /** Sends `buffer[from, to)`, or a copy of it later. False = wait for `onWritable` before sending much more. */
  sendData(buffer: Buffer, from: number, to: number): boolean {
    const link = this.#link;
    if (link === undefined || this.over || this.localEnded) return true;
    const at = this.hasKept ? from : link.writeData(this, buffer, from, to);
    if (at < to) {
      this.#kept ??= new PieceQueue();
      this.#kept.append(buffer, at, to);
      if (this.sendWindow > 0) link.waitForTurn(this);
    }
    if (this.#hasRoom(link)) return true;
    link.waitForRoom(this);
    return false;
  }

  /** Ends our half once everything kept has been sent. */
  sendEnd(trailers: readonly string[]): void {
    if (this.over || this.localEnded) return;
    if (!this.hasKept) {
      this.#writeEnd(trailers);
      return;
    }
    this.localEnded = true;
    this.#keptEnd = trailers;
  }

  /** Ends the stream by RST_STREAM, unless both halves have ended. No event follows. */
  reset(code: number): void {
    if (this.over) {
      this.#drop();
      return;
    }
    const link = this.#link;
    link?.writeReset(this, code);
    this.#finish();
    if (code === PROTOCOL_ERROR) link?.onPeerAtFault();
  }

  /** Once all of our half has been sent, ends the stream by RST_STREAM, unless the peer's half has ended by then. */
  resetAfterEnd(code: number): void {
    if (this.localEnded && !this.hasKept) {
      if (!this.over) this.reset(code);
      return;
    }
    this.#resetAfterEnd = code;
  }

  /** No more `onData` until `resume`: what the peer sends meanwhile, at most the stream's window, is held. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (!this.holds && !this.#endHeld) return;
    this.#deliver();
  }

  /** RFC 9218 4: `urgency` from 0 (first) to 7. */
  setPriority(urgency: number, incremental: boolean): void {
    this.urgency = urgency;
    this.incremental = incremental;
  }

  // ── calls of the connection ──

  /** The stream is open from now on. */
  attach(link: StreamLink, id: number, sendWindow: number, receiveWindow: number): void {
    this.#link = link;
    this.id = id;
    this.sendWindow = sendWindow;
    this.receiveWindow = receiveWindow;
    this.windowSize = receiveWindow;
  }

  /** Data waits to be sent. */
  get hasKept(): boolean {
    return this.#kept !== undefined && this.#kept.length > 0;
  }

  /** Data is held, so trailers that come now are held behind it. */
  get holds(): boolean {
    return this.#held !== undefined && this.#held.length > 0;
  }

  /** `section` is valid during the call only, unless `holds` is true: then the stream keeps it. */
  receiveHeaders(section: FieldSection, endStream: boolean): void {
    if (endStream) this.peerEnded = true;
    if (this.holds) this.#heldTrailers = section;
    else if (!this.#handOver(section, endStream)) return;
    if (endStream) this.#receivedEnd();
  }

  /** Returns whether the role received the data; otherwise it is held. */
  receiveData(buffer: Buffer, from: number, to: number): boolean {
    if (this.#paused || this.holds) {
      this.#held ??= new PieceQueue();
      this.#held.append(buffer, from, to);
      return false;
    }
    this.#take(buffer, from, to);
    return true;
  }

  receiveEnd(): void {
    this.peerEnded = true;
    this.#receivedEnd();
  }

  /** The current read has brought data for the stream: adds it to `list`, whose streams get `endBatch` after the read. */
  touch(list: Http2Stream[]): void {
    if (!this.#touched) list.push(this);
    this.#touched = true;
  }

  endBatch(): void {
    this.#touched = false;
    if (this.over || this.peerEnded) return;
    try {
      this.onBatch();
    } catch (error) {
      this.#link?.onStreamFault(this, error);
    }
  }

  /** Sends at most `limit` bytes of what is kept. */
  sendQueued(limit: number): void {
    const link = this.#link;
    const first = this.#kept?.first;
    if (link === undefined || first === undefined) return;
    this.#kept?.consume(link.writeData(this, first, 0, Math.min(first.length, limit)));
    if (!this.hasKept && this.#keptEnd !== undefined) {
      this.localEnded = false;
      this.#writeEnd(this.#keptEnd);
    }
  }

  /** For a sender that waits: calls `onWritable` if there is room now. False: it keeps waiting. */
  offerRoom(): boolean {
    const link = this.#link;
    if (link === undefined || this.over) return true;
    if (!this.#hasRoom(link)) return false;
    try {
      this.onWritable();
    } catch (error) {
      link.onStreamFault(this, error);
    }
    return true;
  }

  /**
   * The peer has reset the stream, or the connection is gone. `keepsEnd`: if the peer's half is complete, it stays valid, and what is
   * held of it is still handed over.
   */
  fail(code: number, message: string, keepsEnd: boolean): void {
    if (this.over) return;
    if (keepsEnd && this.peerEnded) {
      this.localEnded = true;
      this.#dropKept();
      this.over = true;
      this.#link?.leave(this);
      this.#stopped = true;
      if (!this.#endHeld) this.#notifyStopped();
      return;
    }
    this.#finish();
    try {
      this.onReset(code, message);
    } catch (error) {
      this.onFault(error);
    }
  }

  // ── inside ──

  /** Bounds what a stream keeps because it cannot be sent yet: without room, its sender has to wait. */
  #hasRoom(link: StreamLink): boolean {
    return (this.#kept === undefined || this.#kept.length < queueLimit()) && !link.congested;
  }

  #writeEnd(trailers: readonly string[]): void {
    if (trailers.length > 0) this.#link?.writeHeaders(this, NO_FIELDS, trailers, true);
    else this.#link?.writeEndStream(this);
    this.#endLocal();
  }

  #endLocal(): void {
    this.localEnded = true;
    if (this.#resetAfterEnd !== undefined && !this.peerEnded) this.reset(this.#resetAfterEnd);
    else this.#leaveIfEnded();
  }

  #leaveIfEnded(): void {
    if (this.over || !this.localEnded || !this.peerEnded || this.hasKept) return;
    this.over = true;
    this.#link?.leave(this);
  }

  #receivedEnd(): void {
    // `over` does not matter: a role that responded inside `onHeaders` gets `onEnd` like any other.
    if (this.#silent) return;
    this.#endHeld = true;
    if (!this.#paused && !this.holds) this.#deliver();
    this.#leaveIfEnded();
  }

  /** False: the role has thrown. */
  #handOver(section: FieldSection, endStream: boolean): boolean {
    try {
      this.onHeaders(section, endStream);
      return true;
    } catch (error) {
      this.#link?.onStreamFault(this, error);
      return false;
    }
  }

  /** Hands over what is held, until the reader pauses again. A reader that resumes inside an event is not called recursively. */
  #deliver(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    this.#deliverHeld();
    this.#delivering = false;
  }

  #deliverHeld(): void {
    while (!this.#paused) {
      const bytes = this.#held?.first;
      if (bytes === undefined) break;
      this.#held?.consume(bytes.length);
      this.#take(bytes, 0, bytes.length);
    }
    const trailers = this.#heldTrailers;
    if (!this.#paused && trailers !== undefined) {
      this.#heldTrailers = undefined;
      if (!this.#handOver(trailers, true)) return;
    }
    if (this.#paused) return;
    try {
      if (this.#endHeld) {
        this.#endHeld = false;
        this.onEnd();
        if (this.#stopped) this.#notifyStopped();
      } else if (!this.over) this.onBatch();
    } catch (error) {
      this.#link?.onStreamFault(this, error);
    }
  }

  #notifyStopped(): void {
    try {
      this.onStopped();
    } catch (error) {
      this.#link?.onStreamFault(this, error);
    }
  }

  #take(buffer: Buffer, from: number, to: number): void {
    this.#link?.credit(this, to - from);
    try {
      this.onData(buffer, from, to);
    } catch (error) {
      this.#link?.onStreamFault(this, error);
    }
  }

  #finish(): void {
    this.over = true;
    this.#dropKept();
    this.#drop();
    this.#link?.leave(this);
  }

  #dropKept(): void {
    this.#kept = undefined;
    this.#keptEnd = undefined;
  }

  /** No event follows. What is held is dropped, and the connection's window gets it back. */
  #drop(): void {
    this.#silent = true;
    this.#held = undefined;
    this.#heldTrailers = undefined;
    this.#endHeld = false;
    if (this.uncredited > 0) this.#link?.credit(this, this.uncredited);
  }
}
