/**
 * The samples of one worker in shared memory: entries of different lengths, the newest in place of the oldest. A reader copies an entry and
 * accepts it if the oldest entry of the ring is not a later one by then. A worker may be killed at any point: what it was writing is
 * not in the ring, and its replacement writes there again.
 */
import { storeInOrder } from "../base/store-in-order.ts";

/** Bytes of the header, which is followed by the entries. */
const HEAD = 64;
/** Cells of the header: capacity and positions in units of `UNIT` bytes. Positions only grow, and wrap around as 32-bit numbers. */
const CAPACITY = 0;
const OLDEST = 1;
const END = 2;
const FENCE = 3;
/** Bytes to which entries are aligned. Each begins with its length in bytes, as a cell of four. */
const UNIT = 8;
const LENGTH = 4;
/** In place of a length: the rest of the memory is not used, because the next entry did not fit there. */
const SKIPPED = -1;
/** An entry may take this share of the ring: a few large ones must not be all that is left. */
const LARGEST_SHARE = 1 / 32;

/** Entries of bytes; one thread may write, and every thread may read. */
export class SampleRing {
  readonly buffer: SharedArrayBuffer;
  readonly #head: Int32Array;
  readonly #cells: Int32Array;
  readonly #bytes: Buffer;
  readonly #capacity: number;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#head = new Int32Array(buffer, 0, HEAD / Int32Array.BYTES_PER_ELEMENT);
    this.#capacity = this.#head[CAPACITY] ?? 0;
    this.#cells = new Int32Array(buffer, HEAD);
    this.#bytes = Buffer.from(buffer, HEAD);
  }

  /** A new ring; `bytes` is rounded down to a power of two, so that positions stay valid when they wrap around. */
  static create(bytes: number): SampleRing {
    const capacity = 2 ** Math.floor(Math.log2(bytes / UNIT));
    const buffer = new SharedArrayBuffer(HEAD + capacity * UNIT);
    new Int32Array(buffer)[CAPACITY] = capacity;
    return new SampleRing(buffer);
  }

  /** Bytes of entries that the ring holds at most. */
  get bytes(): number {
    return this.#capacity * UNIT;
  }

  /** Adds an entry; false if it is too large for this ring. */
  add(entry: Uint8Array): boolean {
    if (entry.length > this.bytes * LARGEST_SHARE) return false;
    const units = unitsOf(entry.length);
    const head = this.#head;
    let end = head[END] ?? 0;
    const rest = this.#capacity - this.#indexOf(end);
    const skipped = rest < units ? rest : 0;
    this.#makeRoom(end, skipped + units);
    if (skipped > 0) {
      this.#cells[this.#cellAt(end)] = SKIPPED;
      end = (end + skipped) | 0;
    }
    this.#cells[this.#cellAt(end)] = entry.length;
    this.#bytes.set(entry, this.#indexOf(end) * UNIT + LENGTH);
    Atomics.store(head, END, (end + units) | 0);
    return true;
  }

  /** Copies of the entries, the oldest first. */
  entries(): Buffer[] {
    const head = this.#head;
    const found: Buffer[] = [];
    const end = Atomics.load(head, END);
    let at = Atomics.load(head, OLDEST);
    while (((end - at) | 0) > 0) {
      const length = this.#cells[this.#cellAt(at)] ?? 0;
      const from = this.#indexOf(at) * UNIT + LENGTH;
      // A length that is being written over may be anything.
      const fits = length >= 0 && from + length <= this.#bytes.length;
      const copy = fits ? Buffer.from(this.#bytes.subarray(from, from + length)) : undefined;
      storeInOrder(head, FENCE, 0);
      const oldest = Atomics.load(head, OLDEST);
      if (((oldest - at) | 0) > 0) {
        at = oldest;
        continue;
      }
      if (copy !== undefined) found.push(copy);
      at = (at + this.#unitsAt(at, length)) | 0;
    }
    return found;
  }

  /** Gives up the oldest entries until this many units are free after `end`. */
  #makeRoom(end: number, units: number): void {
    const before = this.#head[OLDEST] ?? 0;
    let oldest = before;
    while (((end - oldest) | 0) + units > this.#capacity)
      oldest = (oldest + this.#unitsAt(oldest, this.#cells[this.#cellAt(oldest)] ?? 0)) | 0;
    // Readers must see that an entry is gone before its bytes change.
    if (oldest !== before) storeInOrder(this.#head, OLDEST, oldest);
  }

  #unitsAt(position: number, length: number): number {
    return length === SKIPPED ? this.#capacity - this.#indexOf(position) : unitsOf(length);
  }

  #indexOf(position: number): number {
    return position & (this.#capacity - 1);
  }

  #cellAt(position: number): number {
    return (this.#indexOf(position) * UNIT) / Int32Array.BYTES_PER_ELEMENT;
  }
}

function unitsOf(length: number): number {
  return Math.ceil((LENGTH + length) / UNIT);
}
