import { linesIn } from "../base/lines.ts";

/** Cells of the shared memory: bytes in flight, and lines dropped since the main thread last read the number. */
const IN_FLIGHT = 0;
const DROPPED = 1;
/** The bytes of lines begin where a line of the processor's cache does. */
const HEAD_BYTES = 64;
/** Bytes of log lines of one worker that may be in flight to the main thread. Pages that no line has reached take no memory. */
const SIZE = 4 * 1024 * 1024;

/** Where a batch of lines is in the ring. */
export interface RingSpan {
  readonly start: number;
  /** Bytes. Those beyond the end of the ring are at its beginning. */
  readonly length: number;
}

/**
 * Carries a worker's log lines to the main thread in memory that both share, so that a batch costs a copy of its bytes. Buffers
 * that go in messages are garbage for which V8 collects sooner, which took 3 to 5 % of the CPU at full load. The worker posts which
 * part a batch takes, and the main thread frees parts in the same order.
 *
 * It is also the limit: message queues between threads have none, and while the main thread is blocked, for example on a slow disk,
 * they would grow until the process is killed. Lines for which there is no room are dropped and counted. Both threads make a ring
 * over the same memory, which ends with the worker: a replacement has a new one.
 */
export class LogRing {
  readonly memory: SharedArrayBuffer;
  readonly #cells: Int32Array;
  readonly #bytes: Uint8Array;
  /** The worker's: where the next batch starts. */
  #next = 0;

  constructor(memory = new SharedArrayBuffer(HEAD_BYTES + SIZE)) {
    this.memory = memory;
    this.#cells = new Int32Array(memory, 0, HEAD_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#bytes = new Uint8Array(memory, HEAD_BYTES);
  }

  // ── the worker's side ──

  /** Copies whole lines into the ring; undefined: there is no room for them, and they count as dropped. */
  put(lines: Uint8Array): RingSpan | undefined {
    const inFlight = Atomics.load(this.#cells, IN_FLIGHT);
    if (inFlight + lines.length > SIZE) {
      Atomics.add(this.#cells, DROPPED, linesIn(lines));
      return undefined;
    }
    // While the main thread keeps up, only the first pages are in use: they stay in the processor's cache, and the rest of the
    // ring takes no memory.
    const start = inFlight === 0 ? 0 : this.#next;
    const first = Math.min(lines.length, SIZE - start);
    this.#bytes.set(lines.subarray(0, first), start);
    this.#bytes.set(lines.subarray(first), 0);
    this.#next = (start + lines.length) % SIZE;
    Atomics.add(this.#cells, IN_FLIGHT, lines.length);
    return { start, length: lines.length };
  }

  // ── the main thread's side ──

  /** How many lines were dropped since the last call. */
  takeDropped(): number {
    return Atomics.exchange(this.#cells, DROPPED, 0);
  }

  /** The lines of the oldest part, valid until `free`. */
  read({ start, length }: RingSpan): Uint8Array {
    const end = start + length;
    if (end <= SIZE) return this.#bytes.subarray(start, end);
    return Buffer.concat([this.#bytes.subarray(start), this.#bytes.subarray(0, end - SIZE)]);
  }

  /** Makes room again. */
  free({ length }: RingSpan): void {
    Atomics.sub(this.#cells, IN_FLIGHT, length);
  }
}
