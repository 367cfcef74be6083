const FIRST_BYTES = 256;

/** Keeps a bounded copy of the beginning of a streaming body, for traces and logs; never delays the body. */
export class BodyCapture {
  readonly #limit: number;
  /** Grows by doubling, so a body in many small pieces takes no more memory than one in large pieces. */
  #kept: Buffer = NOTHING;
  #size = 0;
  truncated = false;

  /** `limit`: bytes to keep from the beginning of the body. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Copies the bytes: the caller may reuse its buffer. */
  add(buffer: Buffer, from: number, to: number): void {
    const { room } = this;
    if (to - from > room) this.truncated = true;
    const length = Math.min(to - from, room);
    if (length <= 0) return;
    this.#grow(this.#size + length);
    buffer.copy(this.#kept, this.#size, from, from + length);
    this.#size += length;
  }

  /** Bytes that can still be kept. */
  get room(): number {
    return this.#limit - this.#size;
  }

  /** The bytes kept so far. */
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
