import { queueLimit } from "../server/pace.ts";
import { PROTOCOL_ERROR } from "./frames.ts";
import type { FieldSection } from "./hpack/decoder.ts";
import { PieceQueue } from "./piece-queue.ts";
import type { Sender } from "./send-queue.ts";

const NO_FIELDS: readonly string[] = [];

/** The connection of a stream, as far as the stream uses it. */
export interface StreamLink {
  /** The socket does not take more. */
  readonly congested: boolean;
  writeHeaders(stream: Http2Stream, pseudo: readonly string[], fields: readonly string[], endStream: boolean): void;
  /** Sends `buffer[from, to)` as far as it may go now; returns where it stopped. */
  writeData(stream: Http2Stream, buffer: Buffer, from: number, to: number): number;
  writeEndStream(stream: Http2Stream): void;
  writeReset(stream: Http2Stream, code: number): void;
  /** The stream keeps data: it is asked by `sendQueued` when its turn has come. */
  waitForTurn(stream: Http2Stream): void;
  /** The sender of the stream waits for `onWritable`. */
  waitForRoom(stream: Http2Stream): void;
  /** So many of its bytes were taken, and may come anew. */
  credit(stream: Http2Stream, bytes: number): void;
  /** Both halves have ended, or it was reset. */
  leave(stream: Http2Stream): void;
  onStreamFault(stream: Http2Stream, error: unknown): void;
  /** The role has reset a stream for what the peer sent. Called when the stream has left. */
  onPeerAtFault(): void;
}

/**
 * One stream, in either role: its states (RFC 9113 5.1), its part of flow control, and what is held while its reader or its peer
 * takes nothing. Roles extend it with what the events mean. An exception that an event throws resets this stream only.
 */
export abstract class Http2Stream implements Sender {
  /** 0 until the stream is open. */
  id = 0;
  /** After `onReset`: the peer did nothing with the stream (RFC 9113 8.7), or never heard of it. */
  refused = false;
  /** Of a stream that we have opened: `FrameWriter.writes` when its head was written. */
  openedAt = -1;
  /** After `onReset`: the code of the peer's RST_STREAM; undefined where something else has ended the stream. */
  resetByPeer: number | undefined;
  urgency = 3;
  /** Without a signal, streams share turns. */
  incremental = true;
  queued = false;
  /** Our half has ended; what is kept still goes out. */
  localEnded = false;
  /** The peer's half has ended. */
  peerEnded = false;
  /** Nothing can be sent or received any more. */
  over = false;
  /** What the peer takes; below 0 after it has shrunk its windows (RFC 9113 6.9.2). */
  sendWindow = 0;
  /** What the peer may send. */
  receiveWindow = 0;
  /** What `receiveWindow` is when all that came was taken; grows (receive-flow.ts). */
  windowSize = 0;
  /** `performance.now()` ms of the last WINDOW_UPDATE of the stream, while its window may grow. */
  creditedAt = 0;
  /** Taken since the last WINDOW_UPDATE of the stream. */
  consumed = 0;
  /** Received, and not taken yet. */
  uncredited = 0;
  #touched = false;
  #link: StreamLink | undefined;
  /** Made when data has to wait: most streams never need them. */
  #kept: PieceQueue | undefined;
  #endsAfterKept = false;
  #trailers: readonly string[] = NO_FIELDS;
  #waitsForRoom = false;
  #paused = false;
  #held: PieceQueue | undefined;
  /** Behind the data that is held. */
  #heldTrailers: FieldSection | undefined;
  #endHeld = false;
  #resetAfterEnd = false;
  #resetCode = 0;
  #silent = false;
  /** `onStopped` follows, or has followed. */
  #stopped = false;
  #delivering = false;

  // ── events, for the role ──

  /**
   * A field section: a head, an interim head or trailers. What is malformed or too large about it is the role's to judge; its
   * list of fields is the role's to keep.
   */
  abstract onHeaders(section: FieldSection, endStream: boolean): void;
  /** `buffer[from, to)` is valid during the call only. Not while paused. */
  abstract onData(buffer: Buffer, from: number, to: number): void;
  /** The peer's half has ended, and all of its data was handed over. */
  abstract onEnd(): void;
  /** What one read brought was handed over: a good moment to send what was gathered. Not after `onEnd`. */
  abstract onBatch(): void;
  /** The stream ended before both halves had. No event follows. `code`: of RST_STREAM or GOAWAY. */
  abstract onReset(code: number, message: string): void;
  /** After `onEnd`: the peer, which has ended its own half, takes no more of ours. No event follows. */
  onStopped(): void {}
  /** After `sendData` returned false: there is room again. */
  abstract onWritable(): void;
  /** An event has thrown, which is a defect of the gateway; the stream was reset. No event follows. */
  abstract onFault(error: unknown): void;

  // ── calls of the role ──

  /** Sends a field section. Nothing once the stream is over. */
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
    this.#waitsForRoom = true;
    link.waitForRoom(this);
    return false;
  }

  /** Ends our half, after what is kept. */
  sendEnd(trailers: readonly string[]): void {
    if (this.over || this.localEnded) return;
    if (!this.hasKept) {
      this.#writeEnd(trailers);
      return;
    }
    this.localEnded = true;
    this.#endsAfterKept = true;
    this.#trailers = trailers;
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

  /** Ends the stream by RST_STREAM once our half has ended and nothing of it is kept, if the peer's half has not ended by then. */
  resetAfterEnd(code: number): void {
    if (this.localEnded && !this.hasKept) {
      if (!this.over) this.reset(code);
      return;
    }
    this.#resetAfterEnd = true;
    this.#resetCode = code;
  }

  /** No more `onData` until `resume`: the peer may send as much as the stream's window lets it, which is held. */
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

  /** `section` may be kept where `holds` says so, until then it is valid during the call. */
  receiveHeaders(section: FieldSection, endStream: boolean): void {
    if (endStream) this.peerEnded = true;
    if (this.holds) this.#heldTrailers = section;
    else if (!this.#handOver(section, endStream)) return;
    if (endStream) this.#receivedEnd();
  }

  /** Returns whether the role has got the data; else it is held. */
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

  /** The current read has brought something: `endBatch` is called for the streams in the list. */
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
    if (!this.hasKept && this.#endsAfterKept) {
      this.localEnded = false;
      this.#writeEnd(this.#trailers);
    }
  }

  /** Calls `onWritable` if the sender waits and there is room now. False: it waits on. */
  offerRoom(): boolean {
    const link = this.#link;
    if (link === undefined || this.over || !this.#waitsForRoom) return true;
    if (!this.#hasRoom(link)) return false;
    this.#waitsForRoom = false;
    try {
      this.onWritable();
    } catch (error) {
      link.onStreamFault(this, error);
    }
    return true;
  }

  /**
   * The peer has reset the stream, or the connection is gone. `keepsEnd`: a peer's half that has ended counts all the same, and
   * what is held of it is still handed over.
   */
  fail(code: number, message: string, keepsEnd: boolean): void {
    if (this.over) return;
    if (keepsEnd && this.peerEnded) {
      this.localEnded = true;
      this.#dropKept();
      this.over = true;
      this.#link?.leave(this);
      this.#stopped = true;
      if (!this.#endHeld) this.#tellStopped();
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

  /** What a stream keeps because it cannot be sent yet is bounded: from there on its sender has to wait. */
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
    if (this.#resetAfterEnd && !this.peerEnded) this.reset(this.#resetCode);
    else this.#leaveIfEnded();
  }

  #leaveIfEnded(): void {
    if (this.over || !this.localEnded || !this.peerEnded || this.hasKept) return;
    this.over = true;
    this.#link?.leave(this);
  }

  #receivedEnd(): void {
    // A stream that is over because the role has answered inside of `onHeaders` hears of the end like any other.
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

  /** Hands over what is held, until the reader pauses again. A reader that resumes inside of an event is not called again. */
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
        if (this.#stopped) this.#tellStopped();
      } else if (!this.over) this.onBatch();
    } catch (error) {
      this.#link?.onStreamFault(this, error);
    }
  }

  #tellStopped(): void {
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
    this.#endsAfterKept = false;
  }

  /** No event follows. What is held will not be taken any more: the connection's window gets it back. */
  #drop(): void {
    this.#silent = true;
    this.#held = undefined;
    this.#heldTrailers = undefined;
    this.#endHeld = false;
    if (this.uncredited > 0) this.#link?.credit(this, this.uncredited);
  }
}
