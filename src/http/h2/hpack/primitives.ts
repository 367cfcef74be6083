/** The integers and strings that header blocks consist of (RFC 7541 section 5). */
import { latin1Write } from "../../../net/node-internals.ts";
import { decodedBound, decodeHuffman } from "./huffman.ts";

export const TRUNCATED = "the header block ends within a field";
export const BAD_INTEGER = "an integer of the header block is too large";
const BAD_HUFFMAN = "invalid Huffman code in the header block";

/** Bytes that an integer takes at most when it is below 2^28. */
export const INTEGER_BOUND = 5;

/** Up to this length a loop is faster than a call into C++. */
const SHORT = 24;

/**
 * Reads from a block. Each method leaves in `at` where it stopped, or in `error` why it failed. Decoding never yields, so `READER`
 * serves every connection of the thread.
 */
class PrimitiveReader {
  at = 0;
  error = "";
  /** Octets of the string that was read last: `bytes[start, end)`, in the block or decoded. */
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  end = 0;
  #decoded = Buffer.allocUnsafeSlow(16 * 1024);

  /**
   * Reads the bytes of an integer that follow its prefix, all ones and equal to `prefix`. Returns the integer, below 2^28 + 2^8, or
   * -1. Its bytes are limited too, because zeros may follow each other without end (RFC 7541 5.1).
   */
  integer(block: Buffer, from: number, to: number, prefix: number): number {
    let value = prefix;
    for (let at = from, shift = 0; at < to; at++, shift += 7) {
      const byte = block[at] as number;
      if (shift > 21 && byte !== 0) return this.#notInteger(BAD_INTEGER);
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) {
        this.at = at + 1;
        return value;
      }
    }
    return this.#notInteger(TRUNCATED);
  }

  /** Reads the string that begins at `from`. False when it failed. */
  string(block: Buffer, from: number, to: number): boolean {
    if (from >= to) return this.#fail(TRUNCATED);
    const first = block[from] as number;
    let start = from + 1;
    let length = first & 0x7f;
    if (length === 0x7f) {
      length = this.integer(block, start, to, 0x7f);
      if (length < 0) return false;
      start = this.at;
    }
    const end = start + length;
    if (end > to) return this.#fail(TRUNCATED);
    this.at = end;
    if (first < 0x80) {
      this.bytes = block;
      this.start = start;
      this.end = end;
      return true;
    }
    const bound = decodedBound(length);
    if (bound > this.#decoded.length) this.#decoded = Buffer.allocUnsafeSlow(bound);
    this.bytes = this.#decoded;
    this.start = 0;
    this.end = decodeHuffman(block, start, end, this.#decoded);
    return this.end >= 0 || this.#fail(BAD_HUFFMAN);
  }

  #fail(error: string): false {
    this.error = error;
    return false;
  }

  #notInteger(error: string): -1 {
    this.error = error;
    return -1;
  }
}

export const READER = new PrimitiveReader();

/**
 * Writes `value` after the bits of `pattern`, into the lower bits that are all ones in `prefix`. Returns the end.
 */
export function writeInteger(out: Buffer, at: number, pattern: number, prefix: number, value: number): number {
  if (value < prefix) {
    out[at] = pattern | value;
    return at + 1;
  }
  out[at++] = pattern | prefix;
  let rest = value - prefix;
  while (rest >= 0x80) {
    out[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  out[at] = rest;
  return at + 1;
}

/** Writes latin1 text as it is: Huffman would save a third of the bytes and costs more than all the rest. Returns the end. */
export function writeString(out: Buffer, at: number, text: string): number {
  const length = text.length;
  at = writeInteger(out, at, 0, 0x7f, length);
  if (length > SHORT) latin1Write(out, text, at);
  else for (let i = 0; i < length; i++) out[at + i] = text.charCodeAt(i);
  return at + length;
}
