const NOTHING = Buffer.alloc(0);
const FIRST_ROOM = 1024;

/**
 * Bytes that have arrived but cannot be used yet: `bytes[start, end)`. They are added at the end and taken from the front. The
 * capacity doubles, so a peer that sends one byte at a time costs no more than its bytes.
 */
export class ByteQueue {
  bytes: Buffer = NOTHING;
  start = 0;
  end = 0;

  get length(): number {
    return this.end - this.start;
  }

  /** The bytes without a copy, valid until the next `append`. */
  view(): Buffer {
    return this.bytes.subarray(this.start, this.end);
  }

  /** Copies `buffer[from, to)`. */
  append(buffer: Buffer, from: number, to: number): void {
    const size = this.length + to - from;
    if (this.end + to - from > this.bytes.length) {
      const room = 2 * size <= this.bytes.length ? this.bytes : Buffer.allocUnsafeSlow(Math.max(FIRST_ROOM, 2 * size));
      this.bytes.copy(room, 0, this.start, this.end);
      this.end -= this.start;
      this.start = 0;
      this.bytes = room;
    }
    buffer.copy(this.bytes, this.end, from, to);
    this.end += to - from;
  }

  /** Drops the bytes before `index`, and releases the memory if nothing is left. */
  consume(index: number): void {
    this.start = index;
    if (this.start >= this.end) this.clear();
  }

  clear(): void {
    this.bytes = NOTHING;
    this.start = 0;
    this.end = 0;
  }
}
