/** Bytes of a block for small pieces. */
const BLOCK = 4096;

/**
 * Collects bytes that arrive in pieces. Small pieces share blocks: a sender may split 2 MiB into two million chunks, and one object per
 * chunk would take a hundred times the memory that is counted.
 */
export class CollectedBytes {
  size = 0;
  #pieces: Buffer[] = [];
  /** Bytes at the end of the last piece that have not been written yet. */
  #free = 0;

  /** Copies `buffer[from, to)`. */
  append(buffer: Buffer, from: number, to: number): void {
    this.size += to - from;
    let at = from;
    if (this.#free > 0) {
      const last = this.#pieces.at(-1) as Buffer;
      at += buffer.copy(last, last.length - this.#free, from, Math.min(to, from + this.#free));
      this.#free -= at - from;
    }
    const rest = to - at;
    if (rest === 0) return;
    // Most bodies are one piece.
    if (this.#pieces.length === 0 || rest >= BLOCK) {
      this.#pieces.push(Buffer.from(buffer.subarray(at, to)));
      return;
    }
    const block = Buffer.allocUnsafeSlow(BLOCK);
    buffer.copy(block, 0, at, to);
    this.#pieces.push(block);
    this.#free = BLOCK - rest;
  }

  /** Keeps `bytes` without copying them. */
  adopt(bytes: Buffer): void {
    this.#seal();
    this.#pieces.push(bytes);
    this.size += bytes.length;
  }

  /** In order. */
  get pieces(): readonly Buffer[] {
    this.#seal();
    return this.#pieces;
  }

  /** All bytes in one piece; the collection keeps them. */
  whole(): Buffer {
    this.#seal();
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces, this.size)];
    return this.#pieces[0] ?? NO_BYTES;
  }

  clear(): void {
    this.#pieces = [];
    this.#free = 0;
    this.size = 0;
  }

  #seal(): void {
    if (this.#free === 0) return;
    const last = this.#pieces.pop() as Buffer;
    this.#pieces.push(last.subarray(0, last.length - this.#free));
    this.#free = 0;
  }
}

export const NO_BYTES = Buffer.alloc(0);
