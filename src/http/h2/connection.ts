/**
 * One HTTP/2 connection (RFC 9113), to a client or to an upstream. The role says which side opens streams; everything else is the
 * same. Bytes from the transport become frames (frame-reader.ts), and frames become events of streams (stream.ts). An owner adds
 * what its role decides: server/http2-connection.ts for clients, upstream/h2/session.ts for upstreams. Frames to send are gathered
 * and written once per turn of the event loop (output.ts).
 *
 * A peer's error ends as little as possible: its stream where RFC 9113 allows that, otherwise the connection. Legal but costly frames
 * are counted (flood-guard.ts). What is buffered for a peer that stops reading is bounded by its windows, by ours, and by the socket.
 */
import { messageOf } from "../../base/errors.ts";
import { ByteQueue } from "../../net/byte-queue.ts";
import { latin1Slice } from "../../net/node-internals.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import { Turns, type TurnTaker } from "../pace.ts";
import { Acknowledgements } from "./acknowledgements.ts";
import { type Flood, FloodGuard } from "./flood-guard.ts";
import { FrameReader, type FrameSink } from "./frame-reader.ts";
import { FrameWriter } from "./frame-writer.ts";
import {
  CANCEL,
  COMPRESSION_ERROR,
  ENHANCE_YOUR_CALM,
  errorName,
  FLOW_CONTROL_ERROR,
  INTERNAL_ERROR,
  MAX_STREAM_ID,
  MAX_WINDOW,
  NO_ERROR,
  PREFACE,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  readUint32,
  SETTINGS_TIMEOUT,
  STREAM_CLOSED,
} from "./frames.ts";
import { FieldSection, HpackDecoder } from "./hpack/decoder.ts";
import { PeerSettings } from "./peer-settings.ts";
import { parsePriority } from "./priority.ts";
import { ReceiveFlow } from "./receive-flow.ts";
import { SendFlow } from "./send-flow.ts";
import { announcement, CLOSED, type Http2Owner, type Http2Settings, type Role } from "./settings.ts";
import type { Http2Stream, StreamLink } from "./stream.ts";
import { StreamTable } from "./stream-table.ts";

/** Milliseconds that a failed connection keeps reading, so that its GOAWAY is not lost in a reset. */
const LINGER_MS = 2000;
/** Streams that are begun in one turn of the event loop. */
const STREAMS_PER_TURN = 64;
/** Unsent bytes at which reading from the peer stops: no window bounds the acknowledgements of its frames. */
const BACKLOG_LIMIT = 1024 * 1024;

/** The fields of the block that is being read: a thread reads one at a time. */
const SECTION = new FieldSection();

export class Http2Connection implements TransportHandler, FrameSink, StreamLink, TurnTaker {
  readonly peer = new PeerSettings();
  /** Counts the reads from the peer that brought bytes. */
  heard = 0;
  readonly #role: Role;
  readonly #transport: Transport;
  readonly #settings: Http2Settings;
  readonly #owner: Http2Owner;
  readonly #reader: FrameReader;
  readonly #writer: FrameWriter;
  readonly #decoder: HpackDecoder;
  readonly #streams: StreamTable;
  readonly #sending: SendFlow;
  readonly #floods = new FloodGuard(performance.now());
  readonly #turns = new Turns(this, STREAMS_PER_TURN);
  /** Bytes of an incomplete frame, or of frames that may not be read yet. */
  readonly #held = new ByteQueue();
  /** Bytes of the client's preface that are still to come. */
  #prefaceLeft: number;
  readonly #receiving: ReceiveFlow;
  /** The stream of the DATA frame that is being read; undefined if its bytes are dropped. */
  #dataStream: Http2Stream | undefined;
  #touched: Http2Stream[] = [];
  /** Heads sent and streams that ended normally: useful work, which raises the budgets of the flood guard. */
  #headsSent = 0;
  #streamsEnded = 0;
  readonly #acks = new Acknowledgements();
  /** `performance.now()` ms at which the transport of a failed connection is destroyed, 0 = it has not failed. */
  #lingerUntil = 0;
  #closed = false;

  constructor(role: Role, transport: Transport, settings: Http2Settings, owner: Http2Owner) {
    this.#role = role;
    this.#transport = transport;
    this.#settings = settings;
    this.#owner = owner;
    const { maxFrameSize, maxHeaderListSize, maxFields } = settings;
    this.#reader = new FrameReader(this, maxFrameSize, 2 * maxHeaderListSize);
    this.#writer = new FrameWriter(transport);
    this.#sending = new SendFlow(this.#writer);
    this.#streams = new StreamTable(role);
    this.#decoder = new HpackDecoder({ tableSize: 4096, maxListSize: maxHeaderListSize, maxFields });
    this.#prefaceLeft = role === "server" ? PREFACE.length : 0;
    if (role === "client") this.#writer.preface();
    this.#writer.settings(announcement(role, settings));
    this.#receiving = new ReceiveFlow(this.#writer, settings, this.#streams, this.#acks);
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  get streams(): Iterable<Http2Stream> {
    return this.#streams.all();
  }

  #framesSent(): number {
    return this.#headsSent + this.#sending.frames;
  }

  /** The socket's buffers are full. */
  get congested(): boolean {
    return this.#writer.congested;
  }

  /** Streams that the peer has begun wait for the next turn of the event loop. */
  get hasWaiting(): boolean {
    return this.#turns.waiting;
  }

  /** `performance.now()` ms since when a frame or a field block has been incomplete; 0 = none is. */
  get partialSince(): number {
    return this.#reader.partialSince;
  }

  /** The connection has ended, or ends as soon as what is written has left. */
  get ended(): boolean {
    return this.#closed || this.#lingerUntil > 0;
  }

  // ── calls of the role ──

  /** Opens `stream` with the head of a request. The caller respects `peer.maxStreams`. False = no stream ids are left. */
  open(stream: Http2Stream, pseudo: readonly string[], fields: readonly string[], endStream: boolean): boolean {
    const id = this.ended ? undefined : this.#streams.nextId();
    if (id === undefined) return false;
    stream.attach(this, id, this.peer.initialWindow, this.#receiving.streamWindow);
    this.#streams.add(stream);
    stream.sendHeaders(pseudo, fields, endStream);
    stream.openedAt = this.#writer.writes;
    return true;
  }

  /** Calls `onAck` when the peer acknowledges. Without an acknowledgement within `timeoutMs` (default 10 s, 0 = no limit) the connection ends. */
  ping(onAck: () => void, timeoutMs?: number): void {
    if (!this.ended) this.#writer.ping(this.#acks.addPing(onAck, timeoutMs));
  }

  /**
   * Asks the peer to open no more streams (RFC 9113 6.8). The first GOAWAY names the highest possible id, because streams that are
   * already on their way are still served. The `final` one, a round trip later, names the last stream that was accepted.
   */
  goAway(final: boolean): void {
    if (this.ended) return;
    if (final) this.#streams.close();
    this.#writer.goAway(final ? this.#streams.lastOfPeer : MAX_STREAM_ID, NO_ERROR, "");
  }

  /** Ends the connection by GOAWAY; all streams are reset. */
  fail(code: number, message: string): void {
    if (this.ended) return;
    this.#owner.onConnectionError(code, message);
    this.#close(code, message, `${errorName(code)}: ${message}`);
  }

  /** Ends the connection once everything sent has left. Only for a connection without streams. */
  end(): void {
    this.#close(NO_ERROR, "", "the connection is closed");
  }

  #close(code: number, debug: string, message: string): void {
    if (this.ended) return;
    this.#writer.goAway(this.#streams.lastOfPeer, code, debug);
    this.#lingerUntil = performance.now() + LINGER_MS;
    this.#finish(message, code);
    this.#transport.end();
    this.#transport.resume();
  }

  /** Ends the connection at once; all streams are reset, with `message`. */
  destroy(message: string): void {
    if (this.#closed) return;
    this.#finish(message, CANCEL);
    this.#transport.destroy();
  }

  /** Called once a second: enforces the peer's deadlines. */
  sweep(now: number): void {
    this.#floods.sweep(now);
    if (this.#lingerUntil > 0) {
      if (now > this.#lingerUntil) this.#transport.destroy();
    } else if (this.#acks.settingsOverdue(now)) this.fail(SETTINGS_TIMEOUT, "SETTINGS were not acknowledged");
    else if (this.#acks.pingOverdue(now)) this.destroy("a PING was not acknowledged");
  }

  // ── from the transport ──

  onData(buffer: Buffer, length: number): void {
    if (this.ended) return;
    this.heard++;
    let at = 0;
    if (this.#prefaceLeft > 0) {
      at = this.#readPreface(buffer, length);
      if (this.#prefaceLeft > 0) return;
    }
    const held = this.#held;
    if (held.length > 0) {
      held.append(buffer, at, length);
      this.#readHeld();
    } else {
      at = this.#reader.read(buffer, at, length);
      if (at < length && !this.ended) held.append(buffer, at, length);
    }
    this.#endRead();
  }

  onEnd(): void {
    this.destroy(CLOSED[this.#role]);
  }

  onDrain(): void {
    this.#writer.drained();
    this.#sending.pump();
    if (!this.#turns.waiting && !this.ended) this.#transport.resume();
  }

  onClose(error: Error | undefined): void {
    this.#finish(error === undefined ? CLOSED[this.#role] : messageOf(error), CANCEL);
    this.#owner.onClosed(error);
  }

  onFault(error: unknown): void {
    this.#finish("a defect of the gateway", INTERNAL_ERROR);
    this.#transport.destroy();
    this.#owner.onFault(error);
  }

  /** Returns where it stopped. */
  #readPreface(buffer: Buffer, length: number): number {
    const take = Math.min(this.#prefaceLeft, length);
    const begin = PREFACE.length - this.#prefaceLeft;
    if (PREFACE.compare(buffer, 0, take, begin, begin + take) !== 0)
      this.fail(PROTOCOL_ERROR, "the preface of HTTP/2 is wrong");
    this.#prefaceLeft -= take;
    return take;
  }

  #readHeld(): void {
    const held = this.#held;
    const at = this.#reader.read(held.bytes, held.start, held.end);
    // Empty if reading has ended the connection.
    if (held.length > 0) held.consume(at);
  }

  /** Called in the turn after one in which the peer has begun too many streams. */
  onTurn(): void {
    if (this.ended) return;
    this.#readHeld();
    this.#endRead();
    if (!this.#turns.waiting && !this.ended) this.#transport.resume();
  }

  #endRead(): void {
    if (this.#touched.length > 0) {
      const touched = this.#touched;
      this.#touched = [];
      for (const stream of touched) stream.endBatch();
    }
    if (this.ended) return;
    if (!this.#turns.waiting) this.#turns.reset();
    if (this.#turns.waiting || this.#writer.backlog > BACKLOG_LIMIT) this.#transport.pause();
  }

  // ── frames of streams ──

  mayRead(id: number): boolean {
    return this.#role === "client" || id <= this.#streams.lastOfPeer || this.#turns.begin();
  }

  onFieldBlock(id: number, buffer: Buffer, from: number, to: number, endStream: boolean, dependency: number): void {
    let stream = this.#streams.get(id);
    const section = stream?.holds === true ? new FieldSection() : SECTION;
    // Decoded even if the stream is gone: later blocks depend on the dynamic table.
    const error = this.#decoder.decode(buffer, from, to, section);
    if (error !== undefined) {
      this.fail(COMPRESSION_ERROR, error);
      return;
    }
    if (stream === undefined) {
      stream = this.#role === "server" ? this.#accept(id) : this.#unknown(id, "HEADERS");
      if (stream === undefined) return;
    } else if (stream.peerEnded) {
      this.#resetByError(stream, STREAM_CLOSED, "HEADERS after the end of the stream");
      return;
    }
    if (dependency === id) {
      this.#resetByError(stream, PROTOCOL_ERROR, "a stream that depends on itself");
      return;
    }
    if (stream.holds && !endStream) {
      // They would have to be held, and no window limits them.
      this.#resetByError(stream, PROTOCOL_ERROR, "trailers that do not end the stream");
      return;
    }
    stream.receiveHeaders(section, endStream);
    // A response's head may wait for body bytes of the same read, so the end of the read must follow. Servers request it through
    // `batch`.
    if (this.#role === "client" && !endStream) stream.touch(this.#touched);
  }

  /** The stream that the peer opens, or undefined if it is refused or not allowed. */
  #accept(id: number): Http2Stream | undefined {
    if (id % 2 === 0) {
      this.fail(PROTOCOL_ERROR, `a client cannot open stream ${id}`);
      return undefined;
    }
    if (id <= this.#streams.lastOfPeer) return this.#unknown(id, "HEADERS");
    if (this.#streams.isLate(id)) return undefined;
    this.#streams.lastOfPeer = id;
    const stream = this.#streams.size < this.#settings.maxStreams ? this.#owner.onStream?.(id) : undefined;
    if (stream === undefined) {
      this.#writeResetFrame(id, REFUSED_STREAM);
      this.#streams.remember(id);
      this.#count("resets", this.#streamsEnded);
      return undefined;
    }
    stream.attach(this, id, this.peer.initialWindow, this.#receiving.streamWindow);
    this.#receiving.begin(stream);
    this.#streams.add(stream);
    return stream;
  }

  /** HEADERS for a stream that is not open: an error unless we have reset it and the peer may not know yet. */
  #unknown(id: number, what: string): undefined {
    if (this.#streams.isIdle(id)) this.fail(PROTOCOL_ERROR, `${what} on a stream that is not open`);
    else if (!this.#streams.ignores(id)) this.fail(STREAM_CLOSED, `${what} on a stream that has ended`);
    return undefined;
  }

  onDataFrame(id: number, length: number): void {
    const stream = this.#streams.get(id);
    this.#dataStream = undefined;
    if (!this.#receiving.receive(length)) {
      this.fail(FLOW_CONTROL_ERROR, "more data than the connection's window allows");
      return;
    }
    if (stream === undefined) {
      this.#receiving.credit(length);
      if (this.#streams.isIdle(id)) this.fail(PROTOCOL_ERROR, "DATA on a stream that is not open");
      else if (!this.#streams.ignores(id)) {
        this.#writeResetFrame(id, STREAM_CLOSED);
        this.#count("resets", this.#streamsEnded);
      }
      return;
    }
    stream.uncredited += length;
    stream.receiveWindow -= length;
    if (stream.peerEnded) this.#resetByError(stream, STREAM_CLOSED, "DATA after the end of the stream");
    else if (stream.receiveWindow < 0 && length > 0)
      this.#resetByError(stream, FLOW_CONTROL_ERROR, "more data than the stream's window allows");
    else this.#dataStream = stream;
  }

  onDataBytes(buffer: Buffer, from: number, to: number): void {
    const stream = this.#dataStream;
    if (stream === undefined || stream.over) return;
    if (stream.receiveData(buffer, from, to)) stream.touch(this.#touched);
  }

  onDataEnd(endStream: boolean, padding: number): void {
    const stream = this.#dataStream;
    this.#dataStream = undefined;
    if (stream === undefined || stream.over) return;
    if (padding > 0) this.credit(stream, padding);
    if (endStream) stream.receiveEnd();
  }

  onPriority(id: number, dependency: number): void {
    if (this.#count("priorities", this.#framesSent()) && dependency === id)
      this.onStreamFrameError(id, PROTOCOL_ERROR, "a stream that depends on itself");
  }

  onPriorityUpdate(id: number, buffer: Buffer, from: number, to: number): void {
    if (!this.#count("priorities", this.#framesSent())) return;
    if (this.#role === "client" || id === 0 || id % 2 === 0) {
      this.fail(PROTOCOL_ERROR, "PRIORITY_UPDATE for a stream that no client opens");
      return;
    }
    const priority = parsePriority(latin1Slice(buffer, from, to));
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#sending.reprioritize(stream, priority);
    else this.#streams.keepPriority(id, priority, this.#settings.maxStreams);
  }

  onResetFrame(id: number, code: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#streams.isIdle(id)) this.fail(PROTOCOL_ERROR, "RST_STREAM on a stream that is not open");
      else this.#count("lateResets", this.#framesSent());
      return;
    }
    if (this.#role === "server" && !this.#count("resets", this.#streamsEnded)) return;
    stream.refused = code === REFUSED_STREAM;
    stream.resetByPeer = code;
    stream.fail(code, `the stream was reset: ${errorName(code)}`, this.#role === "client");
  }

  onStreamFrameError(id: number, code: number, message: string): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#resetByError(stream, code, message);
    // RFC 9113 6.4: no RST_STREAM for an idle stream.
    else if (this.#streams.isIdle(id)) this.fail(code, message);
    else {
      this.#writeResetFrame(id, code);
      this.#count("resets", this.#streamsEnded);
    }
  }

  /** Resets a stream because of what the peer sent on it. */
  #resetByError(stream: Http2Stream, code: number, message: string): void {
    this.#writeResetFrame(stream.id, code);
    this.#streams.remember(stream.id);
    stream.fail(code, message, false);
    this.#count("resets", this.#streamsEnded);
  }

  // ── frames of the connection ──

  onSettingsFrame(ack: boolean, buffer: Buffer, from: number, to: number): void {
    if (ack) {
      if (this.#acks.settingsCame()) this.#receiving.settle();
      else this.onIdleFrame();
      return;
    }
    if (!this.#count("settings", 0)) return;
    const { peer } = this;
    const { initialWindow } = peer;
    const invalid = peer.read(buffer, from, to, this.#role === "server");
    if (invalid !== undefined) {
      this.fail(invalid.code, invalid.message);
      return;
    }
    this.#writer.setTableSize(peer.smallestTableSize);
    this.#writer.setTableSize(peer.headerTableSize);
    if (!this.#changeWindows(peer.initialWindow - initialWindow)) return;
    this.#writer.settingsAck();
    this.#owner.onSettings();
    this.#sending.pump();
  }

  /** Windows of open streams change by the difference, below 0 if need be (RFC 9113 6.9.2). False: the connection has failed. */
  #changeWindows(difference: number): boolean {
    if (difference === 0) return true;
    for (const stream of this.#streams.all()) {
      stream.sendWindow += difference;
      if (stream.sendWindow > MAX_WINDOW) {
        this.fail(FLOW_CONTROL_ERROR, "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large");
        return false;
      }
      this.waitForTurn(stream);
    }
    return true;
  }

  onPingFrame(ack: boolean, buffer: Buffer, from: number): void {
    if (ack) {
      if (!this.#acks.pingCame()) this.onIdleFrame();
      return;
    }
    if (!this.#count("pings", this.#framesSent())) return;
    this.#writer.pingAck(buffer, from);
  }

  onGoAwayFrame(lastStream: number, buffer: Buffer, from: number): void {
    const code = readUint32(buffer, from);
    const passedOver = this.#role === "client" ? this.#streams.all().filter(({ id }) => id > lastStream) : [];
    for (const stream of passedOver) stream.refused = true;
    // First, so that the owner does not replay the streams below on this connection.
    this.#owner.onGoAway(lastStream, code);
    for (const stream of passedOver) stream.fail(REFUSED_STREAM, "the upstream did not process the stream", false);
  }

  onWindowUpdate(id: number, increment: number): void {
    if (!this.#count("windowUpdates", this.#framesSent())) return;
    if (id === 0) {
      this.#sending.window += increment;
      if (increment === 0) this.fail(PROTOCOL_ERROR, "WINDOW_UPDATE of 0");
      else if (this.#sending.window > MAX_WINDOW)
        this.fail(FLOW_CONTROL_ERROR, "WINDOW_UPDATE makes the connection's window too large");
      else this.#sending.pump();
      return;
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#streams.isIdle(id)) this.fail(PROTOCOL_ERROR, "WINDOW_UPDATE on a stream that is not open");
      return;
    }
    stream.sendWindow += increment;
    if (increment === 0) this.#resetByError(stream, PROTOCOL_ERROR, "WINDOW_UPDATE of 0");
    else if (stream.sendWindow > MAX_WINDOW)
      this.#resetByError(stream, FLOW_CONTROL_ERROR, "WINDOW_UPDATE makes the stream's window too large");
    else if (stream.hasKept) {
      this.waitForTurn(stream);
      this.#sending.pump();
    }
  }

  onIdleFrame(): void {
    this.#count("idle", 0);
  }

  onFrameError(code: number, message: string): void {
    this.fail(code, message);
  }

  /** False: the budget is exceeded, and the connection has failed. */
  #count(kind: Flood, used: number): boolean {
    const what = this.#floods.count(kind, used);
    if (what !== undefined) this.fail(ENHANCE_YOUR_CALM, `too many ${what}`);
    return what === undefined;
  }

  // ── for the streams ──

  writeHeaders(stream: Http2Stream, pseudo: readonly string[], fields: readonly string[], endStream: boolean): void {
    if (this.ended) return;
    this.#headsSent++;
    this.#writer.headers(stream.id, pseudo, fields, endStream);
  }

  writeData(stream: Http2Stream, buffer: Buffer, from: number, to: number): number {
    return this.ended ? from : this.#sending.write(stream, buffer, from, to);
  }

  writeEndStream(stream: Http2Stream): void {
    if (!this.ended) this.#writer.endStream(stream.id);
  }

  writeReset(stream: Http2Stream, code: number): void {
    this.#writeResetFrame(stream.id, code);
    this.#streams.remember(stream.id);
    // The role has found a request malformed: a reset that the peer provoked (CVE-2025-8671).
    if (code === PROTOCOL_ERROR && this.#role === "server") this.#count("resets", this.#streamsEnded);
  }

  #writeResetFrame(id: number, code: number): void {
    if (!this.ended) this.#writer.reset(id, code);
  }

  waitForTurn(stream: Http2Stream): void {
    this.#sending.waitForTurn(stream);
  }

  waitForRoom(stream: Http2Stream): void {
    this.#sending.waitForRoom(stream);
  }

  credit(stream: Http2Stream, bytes: number): void {
    stream.uncredited -= bytes;
    if (this.ended) return;
    this.#receiving.credit(bytes);
    if (!stream.peerEnded && !stream.over) this.#receiving.creditStream(stream, bytes);
  }

  leave(stream: Http2Stream): void {
    if (!this.#streams.delete(stream)) return;
    this.#sending.forget(stream);
    this.#receiving.forget(stream);
    if (stream.localEnded && stream.peerEnded) this.#streamsEnded++;
    this.#owner.onStreamGone(stream);
  }

  onPeerAtFault(): void {
    if (this.#role === "server") this.#count("resets", this.#streamsEnded);
  }

  onStreamFault(stream: Http2Stream, error: unknown): void {
    stream.reset(INTERNAL_ERROR);
    stream.onFault(error);
  }

  // ── the end ──

  #finish(message: string, code: number): void {
    if (this.#closed) return;
    const failing = this.#lingerUntil > 0;
    if (!failing) this.#closed = true;
    this.#reader.stop();
    this.#held.clear();
    if (!failing && this.#streams.refuseUnsent(this.#writer.writes)) this.#writer.drop();
    else this.#writer.flush();
    for (const stream of this.#streams.all()) stream.fail(code, message, this.#role === "client");
    this.#sending.close();
    this.#receiving.close();
  }
}
