/**
 * One connection that speaks HTTP/2 (RFC 9113), with a client or with an upstream: the role says which side opens streams, and
 * everything else is the same. Bytes come from the transport and become frames (frame-reader.ts); frames are events of streams
 * (stream.ts), which the roles extend: server/http2-connection.ts for clients, upstream/h2/session.ts for upstreams. What they
 * send is gathered and leaves once per turn of the event loop (output.ts).
 *
 * What a peer does wrong ends as little as possible: its stream where RFC 9113 lets it, else its connection, and nothing else. What it
 * does too often is counted (flood-guard.ts). What it does not take is bounded by its windows, by ours, and by the socket.
 */
import { ByteQueue } from "../../net/byte-queue.ts";
import { latin1Slice } from "../../net/node-internals.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import { Turns } from "../server/pace.ts";
import { type Flood, FloodGuard } from "./flood-guard.ts";
import { FrameReader, type FrameSink } from "./frame-reader.ts";
import {
  ACK,
  COMPRESSION_ERROR,
  CONTINUATION,
  DATA,
  DEFAULT_FRAME_SIZE,
  DEFAULT_WINDOW,
  ENABLE_CONNECT_PROTOCOL,
  ENABLE_PUSH,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  errorName,
  FLOW_CONTROL_ERROR,
  FRAME_HEADER,
  GOAWAY,
  HEADER_TABLE_SIZE,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  INTERNAL_ERROR,
  MAX_CONCURRENT_STREAMS,
  MAX_FRAME_SIZE,
  MAX_HEADER_LIST_SIZE,
  MAX_STREAM_ID,
  MAX_WINDOW,
  NO_ERROR,
  NO_RFC7540_PRIORITIES,
  PING,
  PREFACE,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  RST_STREAM,
  readUint32,
  SETTING_MAX_FRAME_SIZE,
  SETTINGS,
  SETTINGS_TIMEOUT,
  STREAM_CLOSED,
  WINDOW_UPDATE,
  writeFrameHeader,
  writeUint32,
} from "./frames.ts";
import { FieldSection, HpackDecoder } from "./hpack/decoder.ts";
import { HpackEncoder } from "./hpack/encoder.ts";
import { FrameOutput, OUTPUT_SIZE } from "./output.ts";
import { SendQueue } from "./send-queue.ts";
import type { Http2Stream, StreamLink } from "./stream.ts";

/** Which side of the connection this is: clients open streams. */
export type Role = "server" | "client";

/** What we announce, and the limits that follow. Sizes are bytes. */
export interface Http2Settings {
  /** SETTINGS_INITIAL_WINDOW_SIZE: what may come on a stream before it is taken, and so what is held of it at most. */
  readonly streamWindow: number;
  /** The same for all streams of the connection together; at least 65535. */
  readonly connectionWindow: number;
  /** SETTINGS_MAX_FRAME_SIZE, 16384 to 16777215. */
  readonly maxFrameSize: number;
  /** SETTINGS_MAX_HEADER_LIST_SIZE. Compressed field blocks are bounded by it as well. */
  readonly maxHeaderListSize: number;
  /** Fields of one section. */
  readonly maxFields: number;
  /** SETTINGS_MAX_CONCURRENT_STREAMS of a server. */
  readonly maxStreams: number;
  /** SETTINGS_ENABLE_CONNECT_PROTOCOL of a server (RFC 8441). */
  readonly connectProtocol: boolean;
}

/** What the peer has announced; until then what RFC 9113 6.5.2 says. */
export interface PeerSettings {
  /** Its SETTINGS have come. */
  settled: boolean;
  maxStreams: number;
  maxHeaderListSize: number;
  maxFrameSize: number;
  initialWindow: number;
  connectProtocol: boolean;
}

/** The side of a connection that a role adds. */
export interface Http2Owner {
  /** Server: a client opens a stream, whose `onHeaders` follows. undefined = refused. */
  onStream?(id: number): Http2Stream | undefined;
  /** The peer has announced settings, see `peer`. */
  onSettings(): void;
  /** Of the peer. Our streams above `lastStream` have been reset, with `refused` set. */
  onGoAway(lastStream: number, code: number): void;
  /** A stream has left the connection. */
  onStreamGone(stream: Http2Stream): void;
  /** The peer broke the protocol or a limit; it was sent GOAWAY with this code. */
  onConnectionError(code: number, message: string): void;
  /** The transport has closed; every stream has ended before. The last call. */
  onClosed(error: Error | undefined): void;
  /** A defect of the gateway has ended the connection. */
  onFault(error: unknown): void;
}

/** Milliseconds that a peer has to acknowledge SETTINGS or a PING. */
const ACK_TIMEOUT_MS = 10_000;
/** Milliseconds that a connection which has failed still reads, so that its GOAWAY is not lost in a reset. */
const LINGER_MS = 2000;
/** Streams that are begun in one turn of the event loop. */
const STREAMS_PER_TURN = 64;
/** Bytes that a peer may leave unread before it is not read either: answers to its own frames, which no window bounds. */
const BACKLOG_LIMIT = 1024 * 1024;
/** Bytes of one stream that go out before the next stream has its turn. */
const TURN_BYTES = 16 * 1024;
/** Streams that we have reset and whose peer may not know it yet: what still comes for them is ignored. */
const REMEMBERED_RESETS = 1000;
const NO_MORE_STREAMS = MAX_STREAM_ID;

export class Http2Connection implements TransportHandler, FrameSink, StreamLink {
  readonly peer: PeerSettings = {
    settled: false,
    maxStreams: Number.POSITIVE_INFINITY,
    maxHeaderListSize: Number.POSITIVE_INFINITY,
    maxFrameSize: DEFAULT_FRAME_SIZE,
    initialWindow: DEFAULT_WINDOW,
    connectProtocol: false,
  };
  /** Reads from the peer that brought something. */
  heard = 0;
  /** The newest stream that the peer has opened, 0 = none. */
  lastPeerStream = 0;
  readonly #role: Role;
  readonly #transport: Transport;
  readonly #settings: Http2Settings;
  readonly #owner: Http2Owner;
  readonly #reader: FrameReader;
  readonly #output: FrameOutput;
  readonly #decoder: HpackDecoder;
  readonly #encoder = new HpackEncoder();
  readonly #section = new FieldSection();
  readonly #streams = new Map<number, Http2Stream>();
  readonly #sendQueue = new SendQueue<Http2Stream>();
  readonly #waitForRoom = new Set<Http2Stream>();
  readonly #floods = new FloodGuard();
  readonly #turns = new Turns(
    () => this.#goOn(),
    (error) => this.onFault(error),
    STREAMS_PER_TURN,
  );
  /** Bytes of a frame that is not whole, or that may not be read now. */
  readonly #held = new ByteQueue();
  /** Bytes of the client's preface that are still to come. */
  #prefaceLeft: number;
  #sendWindow = DEFAULT_WINDOW;
  #receiveWindow: number;
  /** Taken since the last WINDOW_UPDATE of the connection. */
  #consumed = 0;
  /** Of the DATA frame that is being read; undefined when its stream takes nothing. */
  #dataStream: Http2Stream | undefined;
  #touched: Http2Stream[] = [];
  #resets: Set<number> | undefined;
  /** Of the next stream that we open. */
  #nextStream = 1;
  /** Streams of the peer above it are refused, after the last GOAWAY. */
  #acceptedUpTo = NO_MORE_STREAMS;
  #pumping = false;
  /** Frames of heads and data that were sent, and streams that ended well: what a peer at work makes us do. */
  #framesSent = 0;
  #streamsEnded = 0;
  /** `performance.now()` ms, 0 = nothing is awaited. */
  #settingsDeadline: number;
  #pingDeadline = 0;
  readonly #pings: (() => void)[] = [];
  /** Nothing is read any more; `performance.now()` ms at which the transport is destroyed. */
  #lingerUntil = 0;
  #closed = false;

  constructor(role: Role, transport: Transport, settings: Http2Settings, owner: Http2Owner) {
    this.#role = role;
    this.#transport = transport;
    this.#settings = settings;
    this.#owner = owner;
    const { maxFrameSize, maxHeaderListSize, maxFields, connectionWindow } = settings;
    this.#reader = new FrameReader(this, maxFrameSize, maxHeaderListSize);
    this.#output = new FrameOutput(transport);
    this.#decoder = new HpackDecoder({ tableSize: 4096, maxListSize: maxHeaderListSize, maxFields });
    this.#prefaceLeft = role === "server" ? PREFACE.length : 0;
    this.#receiveWindow = Math.max(connectionWindow, DEFAULT_WINDOW);
    this.#settingsDeadline = performance.now() + ACK_TIMEOUT_MS;
    this.#announce();
  }

  /** Open streams. */
  get streamCount(): number {
    return this.#streams.size;
  }

  get streams(): Iterable<Http2Stream> {
    return this.#streams.values();
  }

  /** The socket does not take more. */
  get congested(): boolean {
    return this.#output.congested;
  }

  /** Bytes that were sent and that the socket has not taken. */
  get backlog(): number {
    return this.#output.backlog;
  }

  /** Nothing more comes or goes: the connection has ended, or does so with what is written. */
  get ended(): boolean {
    return this.#closed || this.#lingerUntil > 0;
  }

  // ── calls of the role ──

  /** Opens `stream` with the head of a request. Nothing is checked: the caller knows `peer.maxStreams`. False = no ids are left. */
  open(stream: Http2Stream, pseudo: readonly string[], fields: readonly string[], endStream: boolean): boolean {
    const id = this.#nextStream;
    if (id > MAX_STREAM_ID || this.ended) return false;
    this.#nextStream += 2;
    this.#streams.set(id, stream);
    stream.attach(this, id, this.peer.initialWindow, this.#settings.streamWindow);
    stream.sendHeaders(pseudo, fields, endStream);
    return true;
  }

  /** `onAck` follows when the peer has answered; a peer that does not answer in 10 seconds loses the connection. */
  ping(onAck: () => void): void {
    if (this.ended) return;
    this.#pings.push(onAck);
    this.#pingDeadline ||= performance.now() + ACK_TIMEOUT_MS;
    const [out, at] = this.#control(8, PING, 0, 0);
    writeUint32(out, at, 0);
    this.#output.advance(writeUint32(out, at + 4, this.#pings.length), 0);
  }

  /**
   * Asks the peer to open no more streams (RFC 9113 6.8). First with the highest id there is, as those on their way are still
   * served; `final`, a round trip later, with the last one that was taken.
   */
  goAway(final: boolean): void {
    if (this.ended) return;
    if (final) this.#acceptedUpTo = this.lastPeerStream;
    this.#writeGoAway(final ? this.lastPeerStream : NO_MORE_STREAMS, NO_ERROR, "");
  }

  /** Ends the connection by GOAWAY; all streams are reset. */
  fail(code: number, message: string): void {
    if (this.ended) return;
    this.#writeGoAway(this.lastPeerStream, code, message);
    this.#lingerUntil = performance.now() + LINGER_MS;
    this.#finish(`${errorName(code)}: ${message}`, code);
    this.#transport.end();
    this.#transport.resume();
    this.#owner.onConnectionError(code, message);
  }

  /** Ends the connection when what was sent has gone out; there have to be no streams. */
  end(): void {
    if (this.ended) return;
    this.#writeGoAway(this.lastPeerStream, NO_ERROR, "");
    this.#lingerUntil = performance.now() + LINGER_MS;
    this.#finish("the connection is closed", NO_ERROR);
    this.#transport.end();
    this.#transport.resume();
  }

  /** Ends the connection at once; all streams are reset, with `message`. */
  destroy(message: string): void {
    if (this.#closed) return;
    this.#finish(message, CANCELLED);
    this.#transport.destroy();
  }

  /** Called once a second: what the peer has to do in time. */
  sweep(now: number): void {
    this.#floods.sweep();
    if (this.#lingerUntil > 0) {
      if (now > this.#lingerUntil) this.#transport.destroy();
    } else if (this.#settingsDeadline > 0 && now > this.#settingsDeadline)
      this.fail(SETTINGS_TIMEOUT, "SETTINGS were not acknowledged");
    else if (this.#pingDeadline > 0 && now > this.#pingDeadline) this.destroy("a PING was not answered");
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
    this.destroy("the connection was closed");
  }

  onDrain(): void {
    this.#output.congested = false;
    this.#pump();
    if (!this.#turns.waiting && !this.ended) this.#transport.resume();
  }

  onClose(error: Error | undefined): void {
    this.#finish(error === undefined ? "the connection was closed" : error.message, CANCELLED);
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
    // The end of the connection has cleared it.
    if (held.length > 0) held.consume(at);
  }

  /** In the turn after one in which the peer has begun too many streams. */
  #goOn(): void {
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
    if (this.#turns.waiting || this.backlog > BACKLOG_LIMIT) this.#transport.pause();
  }

  // ── frames of streams ──

  mayRead(id: number): boolean {
    return this.#role === "client" || id <= this.lastPeerStream || this.#turns.begin();
  }

  onFieldBlock(id: number, buffer: Buffer, from: number, to: number, endStream: boolean, dependency: number): void {
    let stream = this.#streams.get(id);
    const section = stream?.holds === true ? new FieldSection() : this.#section;
    // Also where the stream does not matter any more: the rest of the connection depends on the table.
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
    stream.receiveHeaders(section, endStream);
  }

  /** A stream that the peer opens, or undefined where it may not or is refused. */
  #accept(id: number): Http2Stream | undefined {
    if (id % 2 === 0) {
      this.fail(PROTOCOL_ERROR, `a client cannot open stream ${id}`);
      return undefined;
    }
    if (id <= this.lastPeerStream) return this.#unknown(id, "HEADERS");
    if (id > this.#acceptedUpTo) return undefined;
    this.lastPeerStream = id;
    const stream = this.#streams.size < this.#settings.maxStreams ? this.#owner.onStream?.(id) : undefined;
    if (stream === undefined) {
      this.#writeResetFrame(id, REFUSED_STREAM);
      this.#count("resets", this.#streamsEnded);
      return undefined;
    }
    this.#streams.set(id, stream);
    stream.attach(this, id, this.peer.initialWindow, this.#settings.streamWindow);
    return stream;
  }

  /** HEADERS or data for a stream that is not open. Nothing is wrong if we have reset it and the peer could not know. */
  #unknown(id: number, what: string): undefined {
    if (this.#isIdle(id)) this.fail(PROTOCOL_ERROR, `${what} on a stream that is not open`);
    else if (this.#resets?.has(id) !== true && id <= this.#acceptedUpTo)
      this.fail(STREAM_CLOSED, `${what} on a stream that has ended`);
    return undefined;
  }

  /** Whether the stream was never opened. */
  #isIdle(id: number): boolean {
    const byPeer = (id % 2 === 1) === (this.#role === "server");
    return byPeer ? id > this.lastPeerStream && id <= this.#acceptedUpTo : id >= this.#nextStream || id % 2 === 0;
  }

  onDataFrame(id: number, length: number): void {
    const stream = this.#streams.get(id);
    this.#dataStream = undefined;
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) {
      this.fail(FLOW_CONTROL_ERROR, "more data than the connection's window allows");
      return;
    }
    if (stream === undefined) {
      this.#creditConnection(length);
      if (this.#isIdle(id)) this.fail(PROTOCOL_ERROR, "DATA on a stream that is not open");
      else if (this.#resets?.has(id) !== true && id <= this.#acceptedUpTo) {
        this.#writeResetFrame(id, STREAM_CLOSED);
        this.#count("resets", this.#streamsEnded);
      }
      return;
    }
    stream.uncredited += length;
    stream.receiveWindow -= length;
    if (stream.peerEnded) this.#resetByError(stream, STREAM_CLOSED, "DATA after the end of the stream");
    else if (stream.receiveWindow < 0)
      this.#resetByError(stream, FLOW_CONTROL_ERROR, "more data than the stream's window allows");
    else this.#dataStream = stream;
  }

  onDataBytes(buffer: Buffer, from: number, to: number): void {
    const stream = this.#dataStream;
    if (stream === undefined || stream.over) return;
    if (!stream.receiveData(buffer, from, to) || stream.touched) return;
    stream.touched = true;
    this.#touched.push(stream);
  }

  onDataEnd(endStream: boolean, padding: number): void {
    const stream = this.#dataStream;
    this.#dataStream = undefined;
    if (stream === undefined || stream.over) return;
    if (padding > 0) this.credit(stream, padding);
    if (endStream) stream.receiveEnd();
  }

  onPriority(id: number, dependency: number): void {
    if (this.#count("priorities", this.#framesSent) && dependency === id)
      this.onStreamFrameError(id, PROTOCOL_ERROR, "a stream that depends on itself");
  }

  onPriorityUpdate(id: number, buffer: Buffer, from: number, to: number): void {
    if (!this.#count("priorities", this.#framesSent)) return;
    if (this.#role === "client" || id === 0 || id % 2 === 0) {
      this.fail(PROTOCOL_ERROR, "PRIORITY_UPDATE for a stream that no client opens");
      return;
    }
    // One that comes before its stream is left out: the stream's own field says the same (RFC 9218 7.1 lets us).
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    const { urgency, incremental } = parsePriority(latin1Slice(buffer, from, to));
    stream.setPriority(urgency, incremental);
  }

  onResetFrame(id: number, code: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id)) this.fail(PROTOCOL_ERROR, "RST_STREAM on a stream that is not open");
      else this.#count("idle", this.#framesSent);
      return;
    }
    if (this.#role === "server" && !this.#count("resets", this.#streamsEnded)) return;
    stream.refused = code === REFUSED_STREAM;
    stream.fail(code, `the stream was reset: ${errorName(code)}`, this.#role === "client");
  }

  onStreamFrameError(id: number, code: number, message: string): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) this.#resetByError(stream, code, message);
    else {
      this.#writeResetFrame(id, code);
      this.#count("resets", this.#streamsEnded);
    }
  }

  /** Resets a stream because of what the peer sent on it. */
  #resetByError(stream: Http2Stream, code: number, message: string): void {
    this.#writeResetFrame(stream.id, code);
    this.#remember(stream.id);
    stream.fail(code, message, false);
    this.#count("resets", this.#streamsEnded);
  }

  // ── frames of the connection ──

  onSettingsFrame(ack: boolean, buffer: Buffer, from: number, to: number): void {
    if (ack) {
      this.#settingsDeadline = 0;
      return;
    }
    if (!this.#count("settings", 0)) return;
    for (let at = from; at < to; at += 6) if (!this.#set(buffer.readUInt16BE(at), readUint32(buffer, at + 2))) return;
    this.peer.settled = true;
    const [, at] = this.#control(0, SETTINGS, ACK, 0);
    this.#output.advance(at, 0);
    this.#owner.onSettings();
    this.#pump();
  }

  /** False: the value is forbidden, and the connection has failed. */
  #set(setting: number, value: number): boolean {
    const { peer } = this;
    switch (setting) {
      case HEADER_TABLE_SIZE:
        this.#encoder.setTableSize(value);
        return true;
      case ENABLE_PUSH:
        if (value > 1 || (value === 1 && this.#role === "client")) return this.#invalid("ENABLE_PUSH", value);
        return true;
      case MAX_CONCURRENT_STREAMS:
        peer.maxStreams = value;
        return true;
      case INITIAL_WINDOW_SIZE:
        return this.#setInitialWindow(value);
      case SETTING_MAX_FRAME_SIZE:
        if (value < DEFAULT_FRAME_SIZE || value > MAX_FRAME_SIZE) return this.#invalid("MAX_FRAME_SIZE", value);
        peer.maxFrameSize = value;
        return true;
      case MAX_HEADER_LIST_SIZE:
        peer.maxHeaderListSize = value;
        return true;
      case ENABLE_CONNECT_PROTOCOL:
        if (value > 1) return this.#invalid("ENABLE_CONNECT_PROTOCOL", value);
        peer.connectProtocol = value === 1;
        return true;
      case NO_RFC7540_PRIORITIES:
        return value <= 1 || this.#invalid("NO_RFC7540_PRIORITIES", value);
      default:
        return true;
    }
  }

  #invalid(name: string, value: number): false {
    this.fail(PROTOCOL_ERROR, `SETTINGS_${name} cannot be ${value}`);
    return false;
  }

  /** Windows of open streams change by the difference, below 0 if need be (RFC 9113 6.9.2). */
  #setInitialWindow(value: number): boolean {
    if (value > MAX_WINDOW) {
      this.fail(FLOW_CONTROL_ERROR, `SETTINGS_INITIAL_WINDOW_SIZE cannot be ${value}`);
      return false;
    }
    const difference = value - this.peer.initialWindow;
    this.peer.initialWindow = value;
    for (const stream of this.#streams.values()) {
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
      this.#pings.shift()?.();
      this.#pingDeadline = this.#pings.length > 0 ? performance.now() + ACK_TIMEOUT_MS : 0;
      return;
    }
    if (!this.#count("pings", this.#framesSent)) return;
    const [out, at] = this.#control(8, PING, ACK, 0);
    buffer.copy(out, at, from, from + 8);
    this.#output.advance(at + 8, 0);
  }

  onGoAwayFrame(lastStream: number, buffer: Buffer, from: number): void {
    const code = readUint32(buffer, from);
    if (this.#role === "client")
      for (const stream of [...this.#streams.values()]) {
        if (stream.id <= lastStream) continue;
        stream.refused = true;
        stream.fail(REFUSED_STREAM, "the peer ended the connection before it took the stream", false);
      }
    this.#owner.onGoAway(lastStream, code);
  }

  onWindowUpdate(id: number, increment: number): void {
    if (!this.#count("windowUpdates", this.#framesSent)) return;
    if (id === 0) {
      this.#sendWindow += increment;
      if (increment === 0) this.fail(PROTOCOL_ERROR, "WINDOW_UPDATE of 0");
      else if (this.#sendWindow > MAX_WINDOW)
        this.fail(FLOW_CONTROL_ERROR, "WINDOW_UPDATE makes the connection's window too large");
      else this.#pump();
      return;
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      if (this.#isIdle(id)) this.fail(PROTOCOL_ERROR, "WINDOW_UPDATE on a stream that is not open");
      return;
    }
    stream.sendWindow += increment;
    if (increment === 0) this.#resetByError(stream, PROTOCOL_ERROR, "WINDOW_UPDATE of 0");
    else if (stream.sendWindow > MAX_WINDOW)
      this.#resetByError(stream, FLOW_CONTROL_ERROR, "WINDOW_UPDATE makes the stream's window too large");
    else if (stream.hasKept) {
      this.waitForTurn(stream);
      this.#pump();
    }
  }

  onIdleFrame(): void {
    this.#count("idle", 0);
  }

  onFrameError(code: number, message: string): void {
    this.fail(code, message);
  }

  /** False: it is too much, and the connection has failed. */
  #count(kind: Flood, used: number): boolean {
    const what = this.#floods.count(kind, used);
    if (what !== undefined) this.fail(ENHANCE_YOUR_CALM, `too many ${what}`);
    return what === undefined;
  }

  // ── for the streams ──

  writeHeaders(stream: Http2Stream, pseudo: readonly string[], fields: readonly string[], endStream: boolean): void {
    if (this.ended) return;
    this.#framesSent++;
    const bound = this.#encoder.bound(pseudo, fields);
    const flags = endStream ? END_STREAM | END_HEADERS : END_HEADERS;
    if (FRAME_HEADER + bound > OUTPUT_SIZE) {
      const block = Buffer.allocUnsafe(bound);
      this.#writeBlock(stream.id, block, this.#encoder.encode(pseudo, fields, block, 0), endStream);
      return;
    }
    const output = this.#output;
    const out = output.reserve(FRAME_HEADER + bound);
    const { at } = output;
    const start = at + FRAME_HEADER;
    const end = this.#encoder.encode(pseudo, fields, out, start);
    if (end - start > DEFAULT_FRAME_SIZE) {
      this.#writeBlock(stream.id, Buffer.from(out.subarray(start, end)), end - start, endStream);
      return;
    }
    writeFrameHeader(out, at, end - start, HEADERS, flags, stream.id);
    output.advance(end, stream.id);
  }

  /** A field block that one frame cannot carry. */
  #writeBlock(id: number, block: Buffer, length: number, endStream: boolean): void {
    for (let from = 0; from < length; from += DEFAULT_FRAME_SIZE) {
      const to = Math.min(length, from + DEFAULT_FRAME_SIZE);
      const type = from === 0 ? HEADERS : CONTINUATION;
      const flags = (from === 0 && endStream ? END_STREAM : 0) | (to === length ? END_HEADERS : 0);
      const [out, at] = this.#control(to - from, type, flags, id);
      block.copy(out, at, from, to);
      this.#output.advance(at + to - from, 0);
    }
  }

  writeData(stream: Http2Stream, buffer: Buffer, from: number, to: number): number {
    // Those that wait go first.
    if (this.ended || (!this.#pumping && this.#sendQueue.size > 0)) return from;
    const output = this.#output;
    let at = from;
    while (at < to && !output.congested) {
      const length = Math.min(to - at, this.#sendWindow, stream.sendWindow, DEFAULT_FRAME_SIZE);
      if (length <= 0) break;
      this.#framesSent++;
      this.#sendWindow -= length;
      stream.sendWindow -= length;
      const out = output.reserve(FRAME_HEADER + length);
      const start = writeFrameHeader(out, output.at, length, DATA, 0, stream.id);
      buffer.copy(out, start, at, at + length);
      output.advance(start + length, stream.id);
      at += length;
    }
    return at;
  }

  writeEndStream(stream: Http2Stream): void {
    if (this.ended || this.#output.endLast(stream.id)) return;
    const [, at] = this.#control(0, DATA, END_STREAM, stream.id);
    this.#output.advance(at, 0);
  }

  writeReset(stream: Http2Stream, code: number): void {
    this.#writeResetFrame(stream.id, code);
    this.#remember(stream.id);
  }

  #writeResetFrame(id: number, code: number): void {
    if (this.ended) return;
    const [out, at] = this.#control(4, RST_STREAM, 0, id);
    this.#output.advance(writeUint32(out, at, code), 0);
  }

  #remember(id: number): void {
    this.#resets ??= new Set();
    this.#resets.add(id);
    if (this.#resets.size <= REMEMBERED_RESETS) return;
    for (const oldest of this.#resets) {
      this.#resets.delete(oldest);
      break;
    }
  }

  waitForTurn(stream: Http2Stream): void {
    if (stream.hasKept && stream.sendWindow > 0 && !stream.over) this.#sendQueue.add(stream);
  }

  waitForRoom(stream: Http2Stream): void {
    this.#waitForRoom.add(stream);
  }

  credit(stream: Http2Stream, bytes: number): void {
    stream.uncredited -= bytes;
    if (this.ended) return;
    this.#creditConnection(bytes);
    if (stream.peerEnded || stream.over) return;
    stream.consumed += bytes;
    if (stream.consumed < this.#settings.streamWindow / 2) return;
    this.#writeWindowUpdate(stream.id, stream.consumed);
    stream.receiveWindow += stream.consumed;
    stream.consumed = 0;
  }

  #creditConnection(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed < this.#settings.connectionWindow / 2) return;
    this.#writeWindowUpdate(0, this.#consumed);
    this.#receiveWindow += this.#consumed;
    this.#consumed = 0;
  }

  leave(stream: Http2Stream): void {
    if (!this.#streams.delete(stream.id)) return;
    this.#waitForRoom.delete(stream);
    if (stream.localEnded && stream.peerEnded) this.#streamsEnded++;
    this.#owner.onStreamGone(stream);
  }

  onStreamFault(stream: Http2Stream, error: unknown): void {
    stream.reset(INTERNAL_ERROR);
    stream.onFault(error);
  }

  // ── sending ──

  #announce(): void {
    const { streamWindow, connectionWindow, maxFrameSize, maxHeaderListSize, maxStreams, connectProtocol } =
      this.#settings;
    const settings: (readonly [number, number])[] = [];
    if (this.#role === "client") settings.push([ENABLE_PUSH, 0]);
    else {
      settings.push([MAX_CONCURRENT_STREAMS, maxStreams]);
      if (connectProtocol) settings.push([ENABLE_CONNECT_PROTOCOL, 1]);
      settings.push([NO_RFC7540_PRIORITIES, 1]);
    }
    if (streamWindow !== DEFAULT_WINDOW) settings.push([INITIAL_WINDOW_SIZE, streamWindow]);
    if (maxFrameSize !== DEFAULT_FRAME_SIZE) settings.push([SETTING_MAX_FRAME_SIZE, maxFrameSize]);
    settings.push([MAX_HEADER_LIST_SIZE, maxHeaderListSize]);
    const output = this.#output;
    if (this.#role === "client") {
      const out = output.reserve(PREFACE.length);
      const { at } = output;
      PREFACE.copy(out, at);
      output.advance(at + PREFACE.length, 0);
    }
    const [out, start] = this.#control(settings.length * 6, SETTINGS, 0, 0);
    let at = start;
    for (const [setting, value] of settings) {
      out[at] = setting >>> 8;
      out[at + 1] = setting;
      at = writeUint32(out, at + 2, value);
    }
    output.advance(at, 0);
    if (connectionWindow > DEFAULT_WINDOW) this.#writeWindowUpdate(0, connectionWindow - DEFAULT_WINDOW);
  }

  /** Begins a frame; returns the buffer and where its payload begins. `advance` of the output has to follow. */
  #control(length: number, type: number, flags: number, id: number): [Buffer, number] {
    const out = this.#output.reserve(FRAME_HEADER + length);
    return [out, writeFrameHeader(out, this.#output.at, length, type, flags, id)];
  }

  #writeWindowUpdate(id: number, increment: number): void {
    const [out, at] = this.#control(4, WINDOW_UPDATE, 0, id);
    this.#output.advance(writeUint32(out, at, increment), 0);
  }

  #writeGoAway(lastStream: number, code: number, debug: string): void {
    const [out, at] = this.#control(8 + debug.length, GOAWAY, 0, 0);
    const end = writeUint32(out, writeUint32(out, at, lastStream), code);
    this.#output.advance(end + out.write(debug, end, "latin1"), 0);
  }

  /** Sends what is kept, stream by stream, as far as the windows and the socket take it. */
  #pump(): void {
    if (this.#pumping || this.ended) return;
    this.#pumping = true;
    while (!this.#output.congested && this.#sendWindow > 0) {
      const stream = this.#sendQueue.take();
      if (stream === undefined) break;
      stream.sendQueued(TURN_BYTES);
      if (stream.hasKept && stream.sendWindow > 0 && !stream.over) this.#sendQueue.add(stream, true);
    }
    this.#pumping = false;
    if (this.#waitForRoom.size === 0) return;
    for (const stream of [...this.#waitForRoom]) {
      if (this.congested) break;
      // Before the call, in which its sender may begin to wait again.
      this.#waitForRoom.delete(stream);
      if (!stream.offerRoom()) this.#waitForRoom.add(stream);
    }
  }

  // ── the end ──

  #finish(message: string, code: number): void {
    if (this.#closed) return;
    const failing = this.#lingerUntil > 0;
    if (!failing) this.#closed = true;
    this.#reader.stop();
    this.#held.clear();
    this.#pings.length = 0;
    this.#output.flush();
    for (const stream of [...this.#streams.values()]) stream.fail(code, message, this.#role === "client");
    this.#waitForRoom.clear();
  }
}

/** What a stream gets whose connection is gone. */
const CANCELLED = 0x8;

const URGENCY = /(?:^|,)\s*u=([0-7])\s*(?:$|[,;])/;
const INCREMENTAL = /(?:^|,)\s*i(?:=\?1)?\s*(?:$|[,;])/;

/** Reads a priority field (RFC 9218 4): what it does not say has its default. */
export function parsePriority(value: string): { readonly urgency: number; readonly incremental: boolean } {
  return { urgency: Number(URGENCY.exec(value)?.[1] ?? 3), incremental: INCREMENTAL.test(value) };
}
