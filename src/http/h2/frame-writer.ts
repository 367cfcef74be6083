import type { Transport } from "../../net/transport.ts";
import {
  ACK,
  CONTINUATION,
  DATA,
  DEFAULT_FRAME_SIZE,
  END_HEADERS,
  END_STREAM,
  FRAME_HEADER,
  GOAWAY,
  HEADERS,
  PING,
  PREFACE,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
  writeFrameHeader,
  writeUint32,
} from "./frames.ts";
import { HpackEncoder } from "./hpack/encoder.ts";
import { FrameOutput, OUTPUT_SIZE } from "./output.ts";

/** Bytes that a frame can carry to every peer; larger frames would gain nothing and delay other streams. */
export const SENT_FRAME_SIZE = DEFAULT_FRAME_SIZE;

/** Serializes the frames of one connection into its output buffers. Knows neither stream states nor windows. */
export class FrameWriter {
  readonly #output: FrameOutput;
  readonly #encoder = new HpackEncoder();

  constructor(transport: Transport) {
    this.#output = new FrameOutput(transport);
  }

  /** The socket's buffers are full: wait for the transport's drain, then call `drained`. */
  get congested(): boolean {
    return this.#output.congested;
  }

  /** Bytes written here that the socket has not taken. */
  get backlog(): number {
    return this.#output.backlog;
  }

  drained(): void {
    this.#output.congested = false;
  }

  /** Sends at once what would leave at the end of the turn. */
  flush(): void {
    this.#output.flush();
  }

  /** Drops what would leave at the end of the turn. */
  drop(): void {
    this.#output.drop();
  }

  /** Changes whenever frames leave: frames written at the current value have not left. */
  get writes(): number {
    return this.#output.writes;
  }

  /** SETTINGS_HEADER_TABLE_SIZE of the peer. */
  setTableSize(size: number): void {
    this.#encoder.setTableSize(size);
  }

  preface(): void {
    const out = this.#output.reserve(PREFACE.length);
    const { at } = this.#output;
    this.#output.advance(at + PREFACE.copy(out, at), 0);
  }

  settings(settings: readonly (readonly [setting: number, value: number])[]): void {
    const out = this.#begin(settings.length * 6, SETTINGS, 0, 0);
    let at = this.#payload;
    for (const [setting, value] of settings) {
      out[at] = setting >>> 8;
      out[at + 1] = setting;
      at = writeUint32(out, at + 2, value);
    }
    this.#output.advance(at, 0);
  }

  settingsAck(): void {
    this.#begin(0, SETTINGS, ACK, 0);
    this.#output.advance(this.#payload, 0);
  }

  ping(payload: number): void {
    const out = this.#begin(8, PING, 0, 0);
    this.#output.advance(writeUint32(out, writeUint32(out, this.#payload, 0), payload), 0);
  }

  /** Answers a PING whose payload begins at `from`. */
  pingAck(buffer: Buffer, from: number): void {
    const out = this.#begin(8, PING, ACK, 0);
    this.#output.advance(this.#payload + buffer.copy(out, this.#payload, from, from + 8), 0);
  }

  /** `debug`: human-readable, ASCII. */
  goAway(lastStream: number, code: number, debug: string): void {
    const out = this.#begin(8 + debug.length, GOAWAY, 0, 0);
    const at = writeUint32(out, writeUint32(out, this.#payload, lastStream), code);
    this.#output.advance(at + out.write(debug, at, "latin1"), 0);
  }

  reset(id: number, code: number): void {
    const out = this.#begin(4, RST_STREAM, 0, id);
    this.#output.advance(writeUint32(out, this.#payload, code), 0);
  }

  /** `id` 0: the connection's window. */
  windowUpdate(id: number, increment: number): void {
    const out = this.#begin(4, WINDOW_UPDATE, 0, id);
    this.#output.advance(writeUint32(out, this.#payload, increment), 0);
  }

  headers(id: number, pseudo: readonly string[], fields: readonly string[], endStream: boolean): void {
    const encoder = this.#encoder;
    const output = this.#output;
    const bound = encoder.bound(pseudo, fields);
    if (FRAME_HEADER + bound > OUTPUT_SIZE) {
      const block = Buffer.allocUnsafe(bound);
      this.#block(id, block, encoder.encode(pseudo, fields, block, 0), endStream);
      return;
    }
    const out = output.reserve(FRAME_HEADER + bound);
    const { at } = output;
    const start = at + FRAME_HEADER;
    const end = encoder.encode(pseudo, fields, out, start);
    if (end - start > SENT_FRAME_SIZE) {
      this.#block(id, Buffer.from(out.subarray(start, end)), end - start, endStream);
      return;
    }
    writeFrameHeader(out, at, end - start, HEADERS, endStream ? END_STREAM | END_HEADERS : END_HEADERS, id);
    output.advance(end, id);
  }

  /** A field block that one frame cannot carry. */
  #block(id: number, block: Buffer, length: number, endStream: boolean): void {
    const frames = Math.ceil(length / SENT_FRAME_SIZE);
    // In one buffer if it fits, so that HEADERS can still take END_STREAM: gRPC recognizes a status without messages by that.
    this.#output.reserve(Math.min(OUTPUT_SIZE, length + frames * FRAME_HEADER));
    for (let from = 0; from < length; from += SENT_FRAME_SIZE) {
      const to = Math.min(length, from + SENT_FRAME_SIZE);
      const flags = (from === 0 && endStream ? END_STREAM : 0) | (to === length ? END_HEADERS : 0);
      const out = this.#begin(to - from, from === 0 ? HEADERS : CONTINUATION, flags, id);
      const end = this.#payload + block.copy(out, this.#payload, from, to);
      if (from === 0) this.#output.advance(end, id);
      else this.#output.extend(end);
    }
  }

  /** One frame, at most SENT_FRAME_SIZE bytes. */
  data(id: number, buffer: Buffer, from: number, to: number): void {
    const out = this.#begin(to - from, DATA, 0, id);
    this.#output.advance(this.#payload + buffer.copy(out, this.#payload, from, to), id);
  }

  /** END_STREAM: on the last frame if that is one of the stream and has not left, else on an empty one. */
  endStream(id: number): void {
    if (this.#output.endLast(id)) return;
    this.#begin(0, DATA, END_STREAM, id);
    this.#output.advance(this.#payload, 0);
  }

  /** Where the payload of the newest frame begins. */
  #payload = 0;

  /** Begins a frame in the returned buffer, its payload at `#payload`; `advance` of the output ends it. */
  #begin(length: number, type: number, flags: number, id: number): Buffer {
    const out = this.#output.reserve(FRAME_HEADER + length);
    this.#payload = writeFrameHeader(out, this.#output.at, length, type, flags, id);
    return out;
  }
}
