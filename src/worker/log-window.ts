/** Bytes of log lines that a worker may have on their way to the main thread. */
const MAX_WAITING = 4 * 1024 * 1024;

const LINE_FEED = 0x0a;

/** Indexes of the shared numbers. */
const WAITING = 0;
const DROPPED = 1;

/**
 * Bounds the log lines of one worker that the main thread has not taken yet: when it is busy or blocked, the messages to it
 * would grow without end. Worker and main thread share its memory.
 */
export class LogWindow {
  readonly memory: SharedArrayBuffer;
  readonly #cells: Int32Array;

  constructor(memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new Int32Array(memory);
  }

  // ── the worker's side ──

  /** Whether there is room for `lines`. If so they count as on their way, otherwise as dropped. */
  admit(lines: Uint8Array): boolean {
    const waiting = Atomics.load(this.#cells, WAITING);
    if (waiting === 0 || waiting + lines.length <= MAX_WAITING) {
      Atomics.add(this.#cells, WAITING, lines.length);
      return true;
    }
    let count = 0;
    for (const byte of lines) if (byte === LINE_FEED) count++;
    Atomics.add(this.#cells, DROPPED, count);
    return false;
  }

  // ── the main thread's side ──

  /** `lines` have arrived. Returns how many lines were dropped since the last call. */
  arrived(lines: Uint8Array): number {
    Atomics.sub(this.#cells, WAITING, lines.length);
    return Atomics.exchange(this.#cells, DROPPED, 0);
  }
}
