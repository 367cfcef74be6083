/** Sessions that may be open at once; each is a cell of the shared memory. */
export const MAX_WATCHERS = 32;

const FREE = 0;
const ARMED = 1;
/** Claimed by thread 0; those after it follow. */
const CLAIMED = 2;

/**
 * The memory through which all threads agree who traces which request. Cell 0 counts the armed watchers: it is the one
 * integer that a request loads while nobody watches. A claim is a compare-and-swap, so a watcher gets exactly one request.
 */
export class TraceGate {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;
  readonly #thread: number;

  /** `thread`: index of the one that claims. */
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

  /** Takes the watcher for the calling request; false when another request has it or the watcher has left. */
  claim(slot: number): boolean {
    if (Atomics.compareExchange(this.#cells, slot + 1, ARMED, CLAIMED + this.#thread) !== ARMED) return false;
    Atomics.sub(this.#cells, 0, 1);
    return true;
  }

  /** Index of the thread whose request has taken the watcher. */
  claimant(slot: number): number | undefined {
    const cell = Atomics.load(this.#cells, slot + 1);
    return cell >= CLAIMED ? cell - CLAIMED : undefined;
  }

  /** Ends a watcher, armed or claimed; an armed one takes no request any more. */
  free(slot: number): void {
    if (Atomics.exchange(this.#cells, slot + 1, FREE) === ARMED) Atomics.sub(this.#cells, 0, 1);
  }
}
