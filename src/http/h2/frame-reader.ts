import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FRAME_HEADER,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HEADERS,
  HTTP_1_1_REQUIRED,
  PADDED,
  PING,
  PRIORITY,
  PRIORITY_FLAG,
  PRIORITY_UPDATE,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  RST_STREAM,
  readUint31,
  SETTINGS,
  WINDOW_UPDATE,
} from "./frames.ts";

/**
 * Receives what a reader finds. Buffers are valid during the call only. A sink that ends the connection calls `stop` of the
 * reader, and nothing follows.
 */
export interface FrameSink {
  /** Whether a HEADERS frame of stream `id` may be read now; otherwise reading stops before it. */
  mayRead(id: number): boolean;
  /**
   * A DATA frame begins. `length` is what counts for flow control, including padding. `onDataBytes` follows for its bytes as they
   * arrive, then `onDataEnd`.
   */
  onDataFrame(id: number, length: number): void;
  onDataBytes(buffer: Buffer, from: number, to: number): void;
  /** `padding`: bytes of the frame that were not data. */
  onDataEnd(endStream: boolean, padding: number): void;
  /** A whole field block, of HEADERS and its CONTINUATION frames. `dependency`: the stream of the priority signal, -1 without one. */
  onFieldBlock(id: number, buffer: Buffer, from: number, to: number, endStream: boolean, dependency: number): void;
  onPriority(id: number, dependency: number): void;
  onResetFrame(id: number, code: number): void;
  /** `buffer[from, to)`: identifiers and values, six bytes each. */
  onSettingsFrame(ack: boolean, buffer: Buffer, from: number, to: number): void;
  onPingFrame(ack: boolean, buffer: Buffer, from: number): void;
  onGoAwayFrame(lastStream: number, buffer: Buffer, from: number, to: number): void;
  onWindowUpdate(id: number, increment: number): void;
  /** `buffer[from, to)`: the field value (RFC 9218 7.1). */
  onPriorityUpdate(id: number, buffer: Buffer, from: number, to: number): void;
  /** A DATA frame without data, or a frame of an unknown type: legal, but useless work. */
  onIdleFrame(): void;
  /** An invalid frame that ends only its stream (RFC 9113 5.4.2). */
  onStreamFrameError(id: number, code: number, message: string): void;
  /** The peer broke the protocol: the connection has to end with this code (RFC 9113 5.4.1). */
  onFrameError(code: number, message: string): void;
}

/** The first bytes of a server that responds in HTTP/1.1, "HTT", read as the length of a frame. */
const HTTP1_START = 0x48_54_54;
/** Limit of CONTINUATION frames in one field block (CVE-2024-27316). A block of the largest allowed size needs far fewer. */
const MAX_CONTINUATIONS = 64;

/**
 * Splits the bytes of a connection into frames (RFC 9113 4.1, 6) and checks what needs no knowledge of the stream: sizes, padding,
 * stream ids, and that no other frame interrupts a field block. DATA is passed on as it arrives, every other frame once it is
 * complete. Keeps no bytes, except those of a field block that spans several frames.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #maxFrameSize: number;
  readonly #maxBlock: number;
  #stopped = false;
  /** Reading has stopped before HEADERS that the sink does not accept now. */
  #deferred = false;
  /** `performance.now()` ms since when a frame or a field block has been incomplete; 0 = none is. */
  partialSince = 0;
  /** The peer's first frame has arrived: it has to be SETTINGS (RFC 9113 3.4). */
  #begun = false;
  /** Inside a DATA frame: bytes of data and then of padding that are still to come; 0 and 0 outside. */
  #dataLeft = 0;
  #paddingLeft = 0;
  #padding = 0;
  #inData = false;
  #dataEnds = false;
  /** The stream of an unfinished field block, 0 = none. */
  #blockStream = 0;
  #blockEnds = false;
  #blockDependency = -1;
  #block: Buffer[] = [];
  #blockSize = 0;
  #continuations = 0;

  /** `maxFrameSize`: as announced. `maxBlock`: bytes of a field block before decompression. */
  constructor(sink: FrameSink, maxFrameSize: number, maxBlock: number) {
    this.#sink = sink;
    this.#maxFrameSize = maxFrameSize;
    this.#maxBlock = maxBlock;
  }

  /** Stops reading. */
  stop(): void {
    this.#stopped = true;
    this.#block = [];
  }

  /**
   * Reads `buffer[from, to)`. Returns where it stopped: before an incomplete frame, before HEADERS that may not be read now, or at
   * the end. The caller passes the rest again.
   */
  read(buffer: Buffer, from: number, to: number): number {
    const end = this.#readFrames(buffer, from, to);
    const partial = this.#blockStream !== 0 || (end < to && !this.#deferred);
    if (!partial) this.partialSince = 0;
    else if (this.partialSince === 0) this.partialSince = performance.now();
    return end;
  }

  #readFrames(buffer: Buffer, from: number, to: number): number {
    let at = from;
    this.#deferred = false;
    for (;;) {
      if (this.#stopped) return to;
      if (this.#inData) {
        at = this.#readData(buffer, at, to);
        if (this.#inData) return at;
        continue;
      }
      if (to - at < FRAME_HEADER) return at;
      const length = ((buffer[at] as number) << 16) | ((buffer[at + 1] as number) << 8) | (buffer[at + 2] as number);
      const type = buffer[at + 3] as number;
      const flags = buffer[at + 4] as number;
      const id = readUint31(buffer, at + 5);
      if (!this.#begun && length === HTTP1_START) {
        this.#fail(HTTP_1_1_REQUIRED, "the peer speaks HTTP/1.1");
        continue;
      }
      if (length > this.#maxFrameSize) {
        this.#fail(FRAME_SIZE_ERROR, `a frame of ${length} bytes, more than ${this.#maxFrameSize}`);
        continue;
      }
      if (!this.#begun && type !== SETTINGS) {
        this.#fail(PROTOCOL_ERROR, "the first frame is not SETTINGS");
        continue;
      }
      if (this.#blockStream !== 0 && (type !== CONTINUATION || id !== this.#blockStream)) {
        this.#fail(PROTOCOL_ERROR, "a frame inside a field block");
        continue;
      }
      const start = at + FRAME_HEADER;
      if (type === DATA) {
        // The padding length has not arrived.
        if ((flags & PADDED) !== 0 && length > 0 && start === to) return at;
        at = this.#beginData(buffer, start, length, flags, id);
        continue;
      }
      if (to - start < length) return at;
      if (type === HEADERS && this.#blockStream === 0 && !this.#sink.mayRead(id)) {
        this.#deferred = true;
        return at;
      }
      at = start + length;
      this.#readFrame(type, flags, id, buffer, start, at);
    }
  }

  #beginData(buffer: Buffer, start: number, length: number, flags: number, id: number): number {
    let at = start;
    let padding = 0;
    let data = length;
    if ((flags & PADDED) !== 0) {
      if (length === 0) return this.#fail(FRAME_SIZE_ERROR, "a padded frame without a padding length");
      const padLength = buffer[at++] as number;
      if (padLength >= length) return this.#fail(PROTOCOL_ERROR, "padding as long as its frame");
      padding = padLength + 1;
      data = length - padding;
    }
    if (id === 0) return this.#fail(PROTOCOL_ERROR, "DATA on stream 0");
    const endStream = (flags & END_STREAM) !== 0;
    this.#inData = true;
    this.#dataEnds = endStream;
    this.#dataLeft = data;
    this.#padding = padding;
    this.#paddingLeft = padding === 0 ? 0 : padding - 1;
    if (data === 0 && !endStream) this.#sink.onIdleFrame();
    if (!this.#stopped) this.#sink.onDataFrame(id, length);
    return at;
  }

  #readData(buffer: Buffer, from: number, to: number): number {
    const dataEnd = Math.min(to, from + this.#dataLeft);
    if (dataEnd > from) {
      this.#dataLeft -= dataEnd - from;
      this.#sink.onDataBytes(buffer, from, dataEnd);
    }
    const end = Math.min(to, dataEnd + (this.#dataLeft === 0 ? this.#paddingLeft : 0));
    this.#paddingLeft -= end - dataEnd;
    if (this.#dataLeft === 0 && this.#paddingLeft === 0) {
      this.#inData = false;
      if (!this.#stopped) this.#sink.onDataEnd(this.#dataEnds, this.#padding);
    }
    return end;
  }

  /** `buffer[from, to)` is the payload. */
  #readFrame(type: number, flags: number, id: number, buffer: Buffer, from: number, to: number): void {
    const length = to - from;
    const sink = this.#sink;
    switch (type) {
      case HEADERS:
        this.#readHeaders(flags, id, buffer, from, to);
        break;
      case CONTINUATION:
        this.#readContinuation(flags, buffer, from, to);
        break;
      case WINDOW_UPDATE:
        if (length !== 4) this.#fail(FRAME_SIZE_ERROR, "WINDOW_UPDATE is not 4 bytes");
        else sink.onWindowUpdate(id, readUint31(buffer, from));
        break;
      case RST_STREAM:
        if (length !== 4) this.#fail(FRAME_SIZE_ERROR, "RST_STREAM is not 4 bytes");
        else if (id === 0) this.#fail(PROTOCOL_ERROR, "RST_STREAM on stream 0");
        else sink.onResetFrame(id, buffer.readUInt32BE(from));
        break;
      case SETTINGS:
        this.#readSettings(flags, id, buffer, from, to);
        break;
      case PING:
        if (length !== 8) this.#fail(FRAME_SIZE_ERROR, "PING is not 8 bytes");
        else if (id !== 0) this.#fail(PROTOCOL_ERROR, "PING on a stream");
        else sink.onPingFrame((flags & 1) !== 0, buffer, from);
        break;
      case GOAWAY:
        if (length < 8) this.#fail(FRAME_SIZE_ERROR, "GOAWAY is shorter than 8 bytes");
        else if (id !== 0) this.#fail(PROTOCOL_ERROR, "GOAWAY on a stream");
        else sink.onGoAwayFrame(readUint31(buffer, from), buffer, from + 4, to);
        break;
      case PRIORITY:
        if (id === 0) this.#fail(PROTOCOL_ERROR, "PRIORITY on stream 0");
        else if (length !== 5) sink.onStreamFrameError(id, FRAME_SIZE_ERROR, "PRIORITY is not 5 bytes");
        else sink.onPriority(id, readUint31(buffer, from));
        break;
      case PRIORITY_UPDATE:
        if (id !== 0) this.#fail(PROTOCOL_ERROR, "PRIORITY_UPDATE on a stream");
        else if (length < 4) this.#fail(FRAME_SIZE_ERROR, "PRIORITY_UPDATE is shorter than 4 bytes");
        else sink.onPriorityUpdate(readUint31(buffer, from), buffer, from + 4, to);
        break;
      case PUSH_PROMISE:
        // Clients must not send it, and we announce to servers that we do not accept it (RFC 9113 8.4).
        this.#fail(PROTOCOL_ERROR, "PUSH_PROMISE");
        break;
      default:
        sink.onIdleFrame();
    }
  }

  #readHeaders(flags: number, id: number, buffer: Buffer, from: number, to: number): void {
    let at = from;
    let end = to;
    let dependency = -1;
    if (id === 0) {
      this.#fail(PROTOCOL_ERROR, "HEADERS on stream 0");
      return;
    }
    if ((flags & PADDED) !== 0) {
      if (at === end) {
        this.#fail(FRAME_SIZE_ERROR, "a padded frame without a padding length");
        return;
      }
      end -= buffer[at++] as number;
    }
    if ((flags & PRIORITY_FLAG) !== 0) {
      if (end - at < 5) {
        this.#fail(FRAME_SIZE_ERROR, "HEADERS without room for their priority");
        return;
      }
      dependency = readUint31(buffer, at);
      at += 5;
    }
    if (end < at) {
      this.#fail(PROTOCOL_ERROR, "padding as long as its frame");
      return;
    }
    const endStream = (flags & END_STREAM) !== 0;
    if ((flags & END_HEADERS) !== 0) {
      this.#sink.onFieldBlock(id, buffer, at, end, endStream, dependency);
      return;
    }
    this.#blockStream = id;
    this.#blockEnds = endStream;
    this.#blockDependency = dependency;
    this.#blockSize = 0;
    this.#continuations = 0;
    this.#addToBlock(buffer, at, end);
  }

  #readContinuation(flags: number, buffer: Buffer, from: number, to: number): void {
    const id = this.#blockStream;
    if (id === 0) {
      this.#fail(PROTOCOL_ERROR, "CONTINUATION outside of a field block");
      return;
    }
    const ends = (flags & END_HEADERS) !== 0;
    if (++this.#continuations > MAX_CONTINUATIONS) {
      this.#fail(ENHANCE_YOUR_CALM, `a field block of more than ${MAX_CONTINUATIONS} CONTINUATION frames`);
      return;
    }
    if (!this.#addToBlock(buffer, from, to) || !ends) return;
    const block = Buffer.concat(this.#block, this.#blockSize);
    this.#block = [];
    this.#blockStream = 0;
    this.#sink.onFieldBlock(id, block, 0, block.length, this.#blockEnds, this.#blockDependency);
  }

  /** False if the block is too large: the connection has failed, because later blocks depend on the compression state of this one. */
  #addToBlock(buffer: Buffer, from: number, to: number): boolean {
    this.#blockSize += to - from;
    if (this.#blockSize > this.#maxBlock) {
      this.#fail(ENHANCE_YOUR_CALM, `a field block of more than ${this.#maxBlock} bytes`);
      return false;
    }
    this.#block.push(Buffer.from(buffer.subarray(from, to)));
    return true;
  }

  #readSettings(flags: number, id: number, buffer: Buffer, from: number, to: number): void {
    const ack = (flags & 1) !== 0;
    const length = to - from;
    if (id !== 0) this.#fail(PROTOCOL_ERROR, "SETTINGS on a stream");
    else if (ack && length > 0) this.#fail(FRAME_SIZE_ERROR, "an acknowledgement of SETTINGS with settings");
    else if (length % 6 !== 0) this.#fail(FRAME_SIZE_ERROR, "the length of SETTINGS is not a multiple of 6");
    else if (!this.#begun && ack) this.#fail(PROTOCOL_ERROR, "the first SETTINGS frame is an acknowledgement");
    else {
      this.#begun = true;
      this.#sink.onSettingsFrame(ack, buffer, from, to);
    }
  }

  #fail(code: number, message: string): number {
    this.#sink.onFrameError(code, message);
    return 0;
  }
}
