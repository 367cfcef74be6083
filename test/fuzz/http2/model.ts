/**
 * A peer of the engine that knows nothing but RFC 9113: which frames may come on which stream, and what the windows of both sides allow.
 * It sends what the test asks for, and checks what the engine sends against the model.
 */
import {
  ACK,
  CONTINUATION,
  DATA,
  DEFAULT_FRAME_SIZE,
  DEFAULT_WINDOW,
  END_HEADERS,
  END_STREAM,
  errorName,
  FLOW_CONTROL_ERROR,
  FRAME_HEADER,
  GOAWAY,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  PADDED,
  PING,
  PREFACE,
  RST_STREAM,
  readUint31,
  readUint32,
  SETTINGS,
  WINDOW_UPDATE,
  writeFrameHeader,
  writeUint32,
} from "../../../src/http/h2/frames.ts";
import type { Http2Settings } from "../../../src/http/h2/settings.ts";

/** The body of each stream: byte p of stream id is PATTERN[p + id], which repeats after 256 bytes. */
const PATTERN = Buffer.from(Array.from({ length: 256 * 1024 }, (_, i) => (i * 7) & 0xff));

/** `length` bytes of the body of stream `id` from `position` on. */
export function bodyOf(id: number, position: number, length: number): Buffer {
  const start = (position + id) & 0xff;
  return PATTERN.subarray(start, start + length);
}

export interface ModelStream {
  readonly id: number;
  /** What the peer may send, by the engine's credit; what the engine may send, by the peer's. */
  sendWindow: number;
  receiveWindow: number;
  sent: number;
  received: number;
  /** The half of the peer, and that of the engine. */
  ended: boolean;
  engineEnded: boolean;
  /** The engine has sent RST_STREAM. */
  engineReset: boolean;
  /** RST_STREAM was sent or received: neither side sends anything new. */
  reset: boolean;
}

/** The engine did what RFC 9113 does not allow. */
export class Violation extends Error {}

export class ModelPeer {
  readonly #engine: "server" | "client";
  readonly streams = new Map<number, ModelStream>();
  /** Of the connection. */
  sendWindow = DEFAULT_WINDOW;
  receiveWindow = DEFAULT_WINDOW;
  /** The window that the engine gives to new streams, as announced last. */
  engineStreamWindow: number;
  /** What the engine may never exceed, except for that of the connection by what those of streams may grow by. */
  readonly engineLargestWindow: number;
  readonly engineConnectionWindow: number;
  /** SETTINGS_INITIAL_WINDOW_SIZE of the peer, as announced last. */
  #announcedWindow = DEFAULT_WINDOW;
  /** As the engine has acknowledged it. */
  #acknowledgedWindow = DEFAULT_WINDOW;
  /** Announced and not acknowledged: the window, and the newest stream at that time. */
  readonly #announcements: { readonly window: number; readonly newest: number }[] = [];
  pings = 0;
  pongs = 0;
  /** Why the engine has ended the connection. */
  goAway = "";
  #outbox: Buffer[] = [];
  #inbox = Buffer.alloc(0);
  #nextStream = 1;
  /** Of a field block that goes on in CONTINUATION. */
  #openBlock = 0;

  constructor(
    engine: "server" | "client",
    windows: Pick<Http2Settings, "streamWindow" | "largestWindow" | "connectionWindow">,
  ) {
    this.#engine = engine;
    this.engineStreamWindow = windows.streamWindow;
    this.engineLargestWindow = windows.largestWindow;
    this.engineConnectionWindow = windows.connectionWindow;
    if (engine === "server") this.#outbox.push(PREFACE);
    this.send(SETTINGS, 0, 0, Buffer.alloc(0));
    this.#announcements.push({ window: DEFAULT_WINDOW, newest: 0 });
  }

  /** What is to be written, in one piece. */
  take(): Buffer {
    const bytes = Buffer.concat(this.#outbox);
    this.#outbox = [];
    return bytes;
  }

  send(type: number, flags: number, id: number, payload: Buffer): void {
    const head = Buffer.alloc(FRAME_HEADER);
    writeFrameHeader(head, 0, payload.length, type, flags, id);
    this.#outbox.push(head, payload);
  }

  /** Streams on which the peer may send. */
  get sendable(): ModelStream[] {
    return [...this.streams.values()].filter(({ ended, reset }) => !ended && !reset);
  }

  get openStreams(): ModelStream[] {
    return [...this.streams.values()].filter(({ ended, engineEnded, reset }) => !reset && !(ended && engineEnded));
  }

  /** Opens a stream, where the engine is the server. */
  open(endStream: boolean, parts = 1): ModelStream {
    const stream = this.#add(this.#nextStream, this.#announcedWindow);
    this.#nextStream += 2;
    // GET, http, /, and an authority without Huffman.
    this.sendBlock(stream, Buffer.from([0x82, 0x86, 0x84, 0x01, 1, 0x61]), endStream, parts);
    return stream;
  }

  /** A field block in as many frames. */
  sendBlock(stream: ModelStream, block: Buffer, endStream: boolean, parts = 1): void {
    const size = Math.ceil(block.length / parts);
    for (let part = 0; part < parts; part++) {
      const flags = (part === 0 && endStream ? END_STREAM : 0) | (part === parts - 1 ? END_HEADERS : 0);
      const bytes = block.subarray(part * size, (part + 1) * size);
      this.send(part === 0 ? HEADERS : CONTINUATION, flags, stream.id, bytes);
    }
    if (endStream) stream.ended = true;
  }

  /** Bytes that may be sent on the stream now, in one frame. */
  room(stream: ModelStream): number {
    return Math.max(0, Math.min(stream.sendWindow, this.sendWindow, DEFAULT_FRAME_SIZE));
  }

  /** `padding`: bytes besides the data, its length included; 0 = no padding. All together has to fit in `room`. */
  sendData(stream: ModelStream, length: number, padding: number, endStream: boolean): void {
    const body = bodyOf(stream.id, stream.sent, length);
    const flags = (endStream ? END_STREAM : 0) | (padding > 0 ? PADDED : 0);
    const payload = padding > 0 ? Buffer.concat([Buffer.of(padding - 1), body, Buffer.alloc(padding - 1)]) : body;
    this.send(DATA, flags, stream.id, payload);
    stream.sent += length;
    stream.sendWindow -= payload.length;
    this.sendWindow -= payload.length;
    if (endStream) stream.ended = true;
  }

  reset(stream: ModelStream, code: number): void {
    this.send(RST_STREAM, 0, stream.id, uint32(code));
    stream.reset = true;
  }

  /** `stream` undefined: of the connection. */
  credit(stream: ModelStream | undefined, increment: number): void {
    this.send(WINDOW_UPDATE, 0, stream?.id ?? 0, uint32(increment));
    if (stream === undefined) this.receiveWindow += increment;
    else stream.receiveWindow += increment;
  }

  /** SETTINGS_INITIAL_WINDOW_SIZE. */
  announceWindow(window: number): void {
    const payload = Buffer.alloc(6);
    payload.writeUInt16BE(INITIAL_WINDOW_SIZE);
    payload.writeUInt32BE(window, 2);
    this.send(SETTINGS, 0, 0, payload);
    this.#announcements.push({ window, newest: Math.max(0, ...this.streams.keys()) });
    this.#announcedWindow = window;
  }

  ping(): void {
    this.pings++;
    this.send(PING, 0, 0, Buffer.alloc(8, this.pings));
  }

  /** Bytes from the engine. Throws a Violation. */
  receive(bytes: Buffer): void {
    this.#inbox = Buffer.concat([this.#inbox, bytes]);
    if (this.#engine === "client" && this.#preface > 0) {
      if (this.#inbox.length < PREFACE.length) return;
      this.#check(this.#inbox.subarray(0, PREFACE.length).equals(PREFACE), "the preface is wrong");
      this.#inbox = this.#inbox.subarray(PREFACE.length);
      this.#preface = 0;
    }
    while (this.#inbox.length >= FRAME_HEADER) {
      const end = FRAME_HEADER + this.#inbox.readUIntBE(0, 3);
      if (this.#inbox.length < end) return;
      const [type = 0, flags = 0] = this.#inbox.subarray(3);
      const id = readUint31(this.#inbox, 5);
      const payload = this.#inbox.subarray(FRAME_HEADER, end);
      this.#inbox = this.#inbox.subarray(end);
      this.#receiveFrame(type, flags, id, payload);
    }
  }
  #preface = PREFACE.length;

  #receiveFrame(type: number, flags: number, id: number, payload: Buffer): void {
    this.#check(payload.length <= DEFAULT_FRAME_SIZE, `a frame of ${payload.length} bytes`);
    this.#check(this.#openBlock === 0 || (type === CONTINUATION && id === this.#openBlock), "a frame in a field block");
    switch (type) {
      case SETTINGS:
        if ((flags & ACK) === 0) this.#settings(payload);
        else this.#acknowledged();
        break;
      case PING:
        if ((flags & ACK) === 0) this.send(PING, ACK, 0, payload);
        else this.pongs++;
        break;
      case GOAWAY:
        this.goAway = `${errorName(readUint32(payload, 4))}: ${payload.toString("latin1", 8)}`;
        break;
      case WINDOW_UPDATE:
        this.#credited(id, readUint31(payload, 0));
        break;
      case HEADERS:
        this.#headers(id, flags);
        break;
      case CONTINUATION:
        this.#check(this.#openBlock === id, "CONTINUATION without HEADERS");
        if ((flags & END_HEADERS) !== 0) this.#openBlock = 0;
        break;
      case DATA:
        this.#data(id, flags, payload);
        break;
      case RST_STREAM:
        this.#check(
          readUint32(payload, 0) !== FLOW_CONTROL_ERROR,
          `FLOW_CONTROL_ERROR on stream ${id}, within its window`,
        );
        // Also for a stream that the peer has reset: both may have crossed.
        Object.assign(this.#known(id, "RST_STREAM"), { reset: true, engineReset: true });
        break;
      default:
        throw new Violation(`a frame of type ${type}`);
    }
  }

  #settings(payload: Buffer): void {
    this.send(SETTINGS, ACK, 0, Buffer.alloc(0));
    for (let at = 0; at < payload.length; at += 6) {
      if (payload.readUInt16BE(at) !== INITIAL_WINDOW_SIZE) continue;
      const window = payload.readUInt32BE(at + 2);
      for (const stream of this.streams.values()) stream.sendWindow += window - this.engineStreamWindow;
      this.engineStreamWindow = window;
    }
  }

  #acknowledged(): void {
    const announcement = this.#announcements.shift();
    if (announcement === undefined) throw new Violation("an acknowledgement of nothing");
    const difference = announcement.window - this.#acknowledgedWindow;
    this.#acknowledgedWindow = announcement.window;
    for (const stream of this.streams.values()) {
      // Streams that the peer has opened later had the new window from the beginning.
      if (this.#engine === "client" || stream.id <= announcement.newest) stream.receiveWindow += difference;
    }
  }

  #credited(id: number, increment: number): void {
    this.#check(increment > 0, "WINDOW_UPDATE of 0");
    if (id === 0) {
      this.sendWindow += increment;
      const growth = this.streams.size * (this.engineLargestWindow - this.engineStreamWindow);
      this.#check(
        this.sendWindow <= this.engineConnectionWindow + growth,
        `${this.sendWindow} bytes of credit for the connection`,
      );
      return;
    }
    const stream = this.#known(id, "WINDOW_UPDATE");
    stream.sendWindow += increment;
    this.#check(stream.sendWindow <= this.engineLargestWindow, `${stream.sendWindow} bytes of credit for stream ${id}`);
  }

  #headers(id: number, flags: number): void {
    if (this.#engine === "client" && !this.streams.has(id)) {
      this.#check(id === this.#nextStream, `stream ${id} is opened out of order`);
      this.#nextStream += 2;
      this.#add(id, this.#acknowledgedWindow);
    }
    const stream = this.#known(id, "HEADERS");
    this.#check(!stream.engineEnded && !stream.engineReset, `HEADERS on stream ${id} after its end`);
    if ((flags & END_HEADERS) === 0) this.#openBlock = id;
    if ((flags & END_STREAM) !== 0) stream.engineEnded = true;
  }

  #data(id: number, flags: number, payload: Buffer): void {
    const stream = this.#known(id, "DATA");
    this.#check(!stream.engineEnded && !stream.engineReset, `DATA on stream ${id} after its end`);
    stream.receiveWindow -= payload.length;
    this.receiveWindow -= payload.length;
    this.#check(payload.length === 0 || stream.receiveWindow >= 0, `DATA beyond the window of stream ${id}`);
    this.#check(payload.length === 0 || this.receiveWindow >= 0, "DATA beyond the window of the connection");
    this.#check(payload.equals(bodyOf(id, stream.received, payload.length)), `wrong bytes on stream ${id}`);
    stream.received += payload.length;
    if ((flags & END_STREAM) !== 0) stream.engineEnded = true;
  }

  #add(id: number, receiveWindow: number): ModelStream {
    const stream: ModelStream = {
      id,
      sendWindow: this.engineStreamWindow,
      receiveWindow,
      sent: 0,
      received: 0,
      ended: false,
      engineEnded: false,
      engineReset: false,
      reset: false,
    };
    this.streams.set(id, stream);
    return stream;
  }

  #known(id: number, what: string): ModelStream {
    const stream = this.streams.get(id);
    if (stream === undefined) throw new Violation(`${what} on stream ${id}, which was never opened`);
    return stream;
  }

  #check(holds: boolean, violation: string): void {
    if (!holds) throw new Violation(violation);
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  writeUint32(bytes, 0, value);
  return bytes;
}
