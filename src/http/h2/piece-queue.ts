/** Pieces below SMALL bytes share blocks of BLOCK_SIZE bytes. */
const SMALL = 1024;
const BLOCK_SIZE = 4096;

/**
 * Queued bytes, in the pieces in which they arrived. Small pieces share blocks of memory: a buffer for each would cost a few
 * hundred bytes, so a peer that sends single bytes could occupy a hundred times the memory that its window allows.
 */
export class PieceQueue {
  readonly #pieces: Buffer[] = [];
  /** The block that the last piece ends in; undefined if the next small piece needs a new one. */
  #block: Buffer | undefined;
  #filled = 0;
  /** Bytes. */
  length = 0;

  /** Copies `buffer[from, to)`. */
  append(buffer: Buffer, from: number, to: number): void {
    const length = to - from;
    if (length === 0) return;
    this.length += length;
    const pieces = this.#pieces;
    if (length >= SMALL) {
      pieces.push(Buffer.from(buffer.subarray(from, to)));
      this.#block = undefined;
      return;
    }
    const last = pieces.at(-1);
    if (last !== undefined && this.#block !== undefined && this.#filled + length <= BLOCK_SIZE) {
      pieces[pieces.length - 1] = this.#block.subarray(this.#filled - last.length, this.#filled + length);
    } else {
      this.#block = Buffer.allocUnsafeSlow(BLOCK_SIZE);
      this.#filled = 0;
      pieces.push(this.#block.subarray(0, length));
    }
    buffer.copy(this.#block, this.#filled, from, to);
    this.#filled += length;
  }

  /** The piece that came first; undefined when there is nothing. */
  get first(): Buffer | undefined {
    return this.#pieces[0];
  }

  /** Removes `length` bytes of the first piece, at most all of it. */
  consume(length: number): void {
    const [first] = this.#pieces;
    if (first === undefined) return;
    this.length -= length;
    if (length === first.length) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(length);
  }
}
