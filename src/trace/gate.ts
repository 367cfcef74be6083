/** Traces that can be open at once; each has a cell of the shared memory. */
export const MAX_WATCHERS = 32;

const FREE = 0;
const ARMED = 1;
/** Claimed by thread 0; thread n stores CLAIMED + n. */
const CLAIMED = 2;

/**
 * Shared memory in which threads claim watchers for requests. Cell 0 counts the armed watchers: while it is 0, tracing costs a
 * request one load. A claim is a compare-and-swap, so a watcher gets exactly one request.
 */
export class TraceGate {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;
  readonly #thread: number;

  /** `thread`: index of the thread that uses this instance. */
  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(4 * (MAX_WATCHERS + 1)), thread = 0) {
    this.buffer = buffer;
    this.#thread = thread;
    this.#cells = new Int32Array(buffer);
  }

  /** Whether any watcher waits for a request. */
  get armed(): boolean {
    return Atomics.load(this.#cells, 0) !== 0;
  }

  arm(slot: number): void {
    Atomics.store(this.#cells, slot + 1, ARMED);
    Atomics.add(this.#cells, 0, 1);
  }

  /** Whether the watcher in this slot waits for requests. */
  waits(slot: number): boolean {
    return Atomics.load(this.#cells, slot + 1) === ARMED;
  }

  /** Claims the watcher for a request; false if another request has claimed it or the watcher has disconnected. */
  claim(slot: number): boolean {
    if (Atomics.compareExchange(this.#cells, slot + 1, ARMED, CLAIMED + this.#thread) !== ARMED) return false;
    Atomics.sub(this.#cells, 0, 1);
    return true;
  }

  /** Index of the thread whose request has claimed the watcher; undefined if none has. */
  claimant(slot: number): number | undefined {
    const cell = Atomics.load(this.#cells, slot + 1);
    return cell >= CLAIMED ? cell - CLAIMED : undefined;
  }

  /** Frees the cell of a watcher, armed or claimed. */
  free(slot: number): void {
    if (Atomics.exchange(this.#cells, slot + 1, FREE) === ARMED) Atomics.sub(this.#cells, 0, 1);
  }
}
