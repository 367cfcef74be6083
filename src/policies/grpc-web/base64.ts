/**
 * base64 of gRPC-Web's text form (RFC 4648 section 4), piece by piece. Each message is encoded as a whole with its own padding, so
 * that it can be decoded as soon as it has arrived; a sender may pad anywhere (gRPC-Web protocol, "Message framing").
 */
import { MessageBoundaries } from "../../http/grpc-frames.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PADDING = 64;
const INVALID = 255;
/** The six bits of each character. */
const VALUES = new Uint8Array(256).fill(INVALID);
for (let i = 0; i < ALPHABET.length; i++) VALUES[ALPHABET.charCodeAt(i)] = i;
VALUES["=".charCodeAt(0)] = PADDING;

const NOTHING = Buffer.alloc(0);

/** Decodes strictly: other characters, misplaced padding and bits after the last byte are errors, not ignored as Node.js does. */
export class Base64Decoder {
  /** Values of the characters of a group that is not complete. */
  readonly #group = new Uint8Array(4);
  #grouped = 0;

  /** Every group is complete. */
  get complete(): boolean {
    return this.#grouped === 0;
  }

  /** Decodes the next characters; undefined if they are not base64. */
  decode(text: Uint8Array): Buffer | undefined {
    const group = this.#group;
    const out = Buffer.allocUnsafe(((this.#grouped + text.length) >> 2) * 3);
    let to = 0;
    for (let i = 0; i < text.length; i++) {
      const value = VALUES[text[i] as number] as number;
      if (value === INVALID) return undefined;
      group[this.#grouped++] = value;
      if (this.#grouped < 4) continue;
      this.#grouped = 0;
      const [a, b, c, d] = group as unknown as readonly [number, number, number, number];
      if (a === PADDING || b === PADDING || (c === PADDING && d !== PADDING)) return undefined;
      out[to++] = (a << 2) | (b >> 4);
      if (c === PADDING) {
        if ((b & 0xf) !== 0) return undefined;
        continue;
      }
      out[to++] = ((b & 0xf) << 4) | (c >> 2);
      if (d === PADDING) {
        if ((c & 0x3) !== 0) return undefined;
        continue;
      }
      out[to++] = ((c & 0x3) << 6) | d;
    }
    return out.subarray(0, to);
  }
}

/** Encodes messages; between pieces of one message it keeps the bytes that fill no group yet. */
export class MessageEncoder {
  readonly #messages = new MessageBoundaries();
  /** At most two bytes. */
  #kept = NOTHING;

  encode(bytes: Uint8Array): Buffer {
    let text = "";
    let from = 0;
    for (let end = this.#messages.next(bytes, 0); end !== -1; end = this.#messages.next(bytes, end)) {
      text += this.#take(bytes.subarray(from, end)).toString("base64");
      this.#kept = NOTHING;
      from = end;
    }
    const rest = this.#take(bytes.subarray(from));
    const whole = rest.length - (rest.length % 3);
    this.#kept = Buffer.from(rest.subarray(whole));
    return Buffer.from(text + rest.toString("base64", 0, whole), "latin1");
  }

  #take(bytes: Uint8Array): Buffer {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    return this.#kept.length === 0 ? piece : Buffer.concat([this.#kept, piece]);
  }
}
