/** Finds where the messages of a gRPC stream end (gRPC over HTTP/2, "Length-Prefixed-Message") without collecting them. */
import { BodyCapture } from "../trace/body-capture.ts";
import type { MessageReader, StreamMessage } from "./stream-messages.ts";

/** One byte of flags, four of length. */
export const PREFIX_BYTES = 5;

/** Counts the complete messages of one body. */
export class MessageCounter {
  count = 0;
  readonly #messages = new MessageBoundaries();

  add(bytes: Uint8Array): void {
    for (let end = this.#messages.next(bytes, 0); end !== -1; end = this.#messages.next(bytes, end)) this.count++;
  }
}

/** Follows one body through the pieces in which it arrives. */
export class MessageBoundaries {
  /** Bytes of the prefix that are still to come; 0 within a message. */
  #prefixLeft = PREFIX_BYTES;
  /** The message's length as far as its prefix has arrived, then its bytes that are still to come. */
  #left = 0;
  /** A message had flags other than compression: gRPC has no such messages, but gRPC-Web has such frames. */
  foreign = false;

  /** The last message is complete, or none has begun. */
  get between(): boolean {
    return this.#prefixLeft === PREFIX_BYTES;
  }

  /** Reads `bytes` to their end. */
  follow(bytes: Uint8Array): void {
    for (let end = 0; end !== -1; ) end = this.next(bytes, end);
  }

  /** Reads `bytes` from `from` to the end of the current message. Returns the index after it, or -1 if it ends in a later piece. */
  next(bytes: Uint8Array, from: number): number {
    let at = from;
    for (; this.#prefixLeft > 0; at++) {
      if (at === bytes.length) return -1;
      if (this.#prefixLeft === PREFIX_BYTES && (bytes[at] as number) > 1) this.foreign = true;
      // The flags are not part of the length. Not a shift: four bytes do not fit a signed 32-bit integer.
      if (this.#prefixLeft < PREFIX_BYTES) this.#left = this.#left * 256 + (bytes[at] as number);
      this.#prefixLeft--;
    }
    const available = bytes.length - at;
    if (available < this.#left) {
      this.#left -= available;
      return -1;
    }
    at += this.#left;
    this.#left = 0;
    this.#prefixLeft = PREFIX_BYTES;
    return at;
  }
}

/** Reads the messages of one direction of a gRPC call. */
export class GrpcReader implements MessageReader {
  readonly #maxContent: number;
  readonly #boundaries = new MessageBoundaries();
  #kept: BodyCapture;
  #bytes = 0;

  /** `maxContent`: bytes to keep from the beginning of each message. */
  constructor(maxContent: number) {
    this.#maxContent = maxContent;
    this.#kept = new BodyCapture(PREFIX_BYTES + maxContent);
  }

  read(bytes: Buffer, onMessage: (message: StreamMessage) => void): string | undefined {
    for (let at = 0; ; ) {
      const end = this.#boundaries.next(bytes, at);
      if (this.#boundaries.foreign) return "the flags of a message are not those of gRPC";
      const to = end === -1 ? bytes.length : end;
      this.#kept.add(bytes, at, to);
      this.#bytes += to - at;
      if (end === -1) return undefined;
      at = end;
      onMessage(this.#complete());
    }
  }

  #complete(): StreamMessage {
    const prefixed = this.#kept.bytes;
    const content = new BodyCapture(this.#maxContent);
    content.add(prefixed, PREFIX_BYTES, prefixed.length);
    content.truncated = this.#kept.truncated;
    const message = { bytes: this.#bytes - PREFIX_BYTES, compressed: prefixed.readUInt8(0) === 1, content };
    this.#kept = new BodyCapture(PREFIX_BYTES + this.#maxContent);
    this.#bytes = 0;
    return message;
  }
}
