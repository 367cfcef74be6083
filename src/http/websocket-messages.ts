import { BodyCapture } from "../trace/body-capture.ts";
import type { MessageReader, Opcode, StreamMessage } from "./stream-messages.ts";

/** RFC 6455 5.2. */
const OPCODES: Readonly<Record<number, Opcode>> = { 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong" };
const CONTINUATION = 0;
const FIN = 0x80;
/** The first frame of a compressed message has it (RFC 7692 6). */
const RSV1 = 0x40;
const RSV2_AND_3 = 0x30;
const MASKED = 0x80;
const MAX_HEADER_BYTES = 14;
/** RFC 6455 5.5. */
const MAX_CONTROL_BYTES = 125;
const CLOSE_CODE_BYTES = 2;

/** A message whose frames are arriving. */
interface Partial {
  readonly opcode: Opcode;
  readonly compressed: boolean;
  readonly content: BodyCapture;
  bytes: number;
}

/** The frame whose payload is arriving. */
interface Frame {
  readonly message: Partial;
  /** It ends its message. */
  readonly final: boolean;
  readonly mask: Buffer | undefined;
  /** Bytes of the payload that have arrived, and that are still to come. */
  seen: number;
  left: number;
}

/** Reads the frames of one direction of a WebSocket, and joins the fragments of messages. Control frames may stand between fragments. */
export class WebSocketReader implements MessageReader {
  readonly #masked: boolean;
  readonly #maxContent: number;
  readonly #header = Buffer.alloc(MAX_HEADER_BYTES);
  #headerSize = 0;
  #frame: Frame | undefined;
  /** A text or binary message whose last frame has not begun. */
  #fragments: Partial | undefined;

  /** `masked`: the bytes are those of the client (RFC 6455 5.1); `maxContent`: bytes to keep from the beginning of each message. */
  constructor(masked: boolean, maxContent: number) {
    this.#masked = masked;
    this.#maxContent = maxContent;
  }

  read(bytes: Buffer, onMessage: (message: StreamMessage) => void): string | undefined {
    for (let at = 0; ; ) {
      if (this.#frame === undefined) {
        at = this.#readHeader(bytes, at);
        if (this.#headerSize < this.#headerLength) return undefined;
        const frame = this.#begin();
        if (typeof frame === "string") return frame;
        this.#frame = frame;
      }
      const frame = this.#frame;
      const length = Math.min(frame.left, bytes.length - at);
      keep(frame, bytes.subarray(at, at + length));
      at += length;
      if (frame.left > 0) return undefined;
      this.#frame = undefined;
      if (frame.final) onMessage(complete(frame.message));
    }
  }

  /** Known once two bytes have arrived. */
  get #headerLength(): number {
    if (this.#headerSize < 2) return 2;
    const second = this.#header.readUInt8(1);
    const short = second & 0x7f;
    return 2 + (short === 127 ? 8 : short === 126 ? 2 : 0) + ((second & MASKED) === 0 ? 0 : 4);
  }

  #readHeader(bytes: Buffer, from: number): number {
    let at = from;
    while (at < bytes.length && this.#headerSize < this.#headerLength)
      this.#header[this.#headerSize++] = bytes.readUInt8(at++);
    return at;
  }

  /** The frame whose header has arrived, or why it is not valid. */
  #begin(): Frame | string {
    const header = this.#header;
    const first = header.readUInt8(0);
    const masked = (header.readUInt8(1) & MASKED) !== 0;
    const length = payloadLength(header);
    const mask = masked ? Buffer.from(header.subarray(this.#headerSize - 4, this.#headerSize)) : undefined;
    this.#headerSize = 0;
    if (masked !== this.#masked)
      return masked ? "a frame of the server is masked" : "a frame of the client is not masked";
    if ((first & RSV2_AND_3) !== 0) return "a frame has reserved bits";
    if (!Number.isSafeInteger(length)) return "a frame has an impossible length";
    const message = this.#messageOf(first, length);
    if (typeof message === "string") return message;
    return { message, final: (first & FIN) !== 0, mask, seen: 0, left: length };
  }

  /** The message that a frame belongs to. */
  #messageOf(first: number, length: number): Partial | string {
    const code = first & 0x0f;
    const final = (first & FIN) !== 0;
    const compressed = (first & RSV1) !== 0;
    if (code === CONTINUATION) {
      const message = this.#fragments;
      if (message === undefined) return "a frame continues a message that has not begun";
      if (compressed) return "a frame that continues a message has reserved bits";
      if (final) this.#fragments = undefined;
      return message;
    }
    const opcode = OPCODES[code];
    if (opcode === undefined) return `a frame has the reserved opcode ${code}`;
    if (opcode !== "text" && opcode !== "binary") {
      if (!final || compressed || length > MAX_CONTROL_BYTES)
        return "a control frame is in fragments, compressed or too long";
      return { opcode, compressed, content: new BodyCapture(MAX_CONTROL_BYTES), bytes: 0 };
    }
    if (this.#fragments !== undefined) return "a message begins within another";
    const message = { opcode, compressed, content: new BodyCapture(this.#maxContent), bytes: 0 };
    if (!final) this.#fragments = message;
    return message;
  }
}

/** Of a complete header. Not exact, and then not a safe integer, from 2^53 on. */
function payloadLength(header: Buffer): number {
  const short = header.readUInt8(1) & 0x7f;
  if (short === 126) return header.readUInt16BE(2);
  return short === 127 ? Number(header.readBigUInt64BE(2)) : short;
}

/** Counts the payload, and copies what there is room for without its mask. */
function keep(frame: Frame, payload: Buffer): void {
  const { message, mask } = frame;
  const kept = Buffer.from(payload.subarray(0, message.content.room));
  if (mask !== undefined)
    for (let index = 0; index < kept.length; index++)
      kept[index] = kept.readUInt8(index) ^ mask.readUInt8((frame.seen + index) % mask.length);
  message.content.add(kept, 0, kept.length);
  if (kept.length < payload.length) message.content.truncated = true;
  message.bytes += payload.length;
  frame.seen += payload.length;
  frame.left -= payload.length;
}

function complete({ opcode, compressed, content, bytes }: Partial): StreamMessage {
  if (opcode !== "close" || bytes < CLOSE_CODE_BYTES) return { opcode, compressed, content, bytes };
  const reason = new BodyCapture(MAX_CONTROL_BYTES);
  reason.add(content.bytes, CLOSE_CODE_BYTES, content.bytes.length);
  return { opcode, compressed, content: reason, bytes, closeCode: content.bytes.readUInt16BE(0) };
}
