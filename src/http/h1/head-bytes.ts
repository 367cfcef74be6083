/**
 * A second copy of a head, as bytes. Loops over bytes are twice as fast as over the characters of a string and can take four at a
 * time, while slices are cheaper from a string. Measured on a browser's head: 0.62 µs with this copy, 0.91 µs without.
 */
import { latin1Write } from "../../net/node-internals.ts";

/** Room after the text for the byte that ends every loop and for reading four bytes at once. */
const PADDING = 8;

class HeadBytes {
  bytes: Buffer = Buffer.alloc(64 * 1024);
  #view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);

  /** Holds the bytes of `text`, which must be latin1, from now until the next call. Returns them, with NUL after the end. */
  load(text: string): Buffer {
    const length = text.length;
    if (length + PADDING > this.bytes.length) {
      this.bytes = Buffer.alloc(2 * length + PADDING);
      this.#view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);
    }
    latin1Write(this.bytes, text, 0);
    this.bytes[length] = 0;
    return this.bytes;
  }

  /**
   * Index of the first group of four bytes from `start` that holds a control character. A field value may contain everything before
   * it. Sets the high bit of bytes below 0x20 (first term) and of 0x7f (second); never misses one.
   */
  skipPlain(start: number): number {
    const view = this.#view;
    let i = start;
    for (;;) {
      const four = view.getInt32(i);
      const flipped = four ^ 0x7f7f7f7f;
      const control = ((four - 0x20202020) & ~four) | ((flipped - 0x01010101) & ~flipped);
      if ((control & 0x80808080) !== 0) return i;
      i += 4;
    }
  }
}

/** Parsing never yields, so one copy serves every connection of the thread. */
export const HEAD_BYTES = new HeadBytes();
