const FIRST_BYTES = 256;

/** Keeps a bounded copy of a body that streams by, for who is told of it afterwards; never delays it. */
export class BodyCapture {
  readonly #limit: number;
  /** Grows by doubling: bytes that come one by one take no more room than those that come together. */
  #kept: Buffer = NOTHING;
  #size = 0;
  truncated = false;

  /** `limit`: bytes that are kept; of a longer body those at its beginning. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What is handed over need not stay as it is. */
  add(buffer: Buffer, from: number, to: number): void {
    const { room } = this;
    if (to - from > room) this.truncated = true;
    const length = Math.min(to - from, room);
    if (length <= 0) return;
    this.#grow(this.#size + length);
    buffer.copy(this.#kept, this.#size, from, from + length);
    this.#size += length;
  }

  /** Bytes that may still be kept. */
  get room(): number {
    return this.#limit - this.#size;
  }

  /** What has been kept so far. */
  get bytes(): Buffer {
    return this.#kept.subarray(0, this.#size);
  }

  base64(): string {
    return this.bytes.toString("base64");
  }

  #grow(size: number): void {
    if (size <= this.#kept.length) return;
    const room = Math.min(this.#limit, Math.max(FIRST_BYTES, size, 2 * this.#kept.length));
    const grown = Buffer.allocUnsafe(room);
    this.#kept.copy(grown, 0, 0, this.#size);
    this.#kept = grown;
  }
}

const NOTHING = Buffer.alloc(0);
