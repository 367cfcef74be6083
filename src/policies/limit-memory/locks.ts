/** Attempts before a thread sleeps on a lock. The holder needs less than a microsecond unless it is descheduled. */
const SPINS = 200;
const SLEEP_MS = 1;

/** Locks in memory that threads share, one a word: 0, or the number of the thread that holds it. */
export class SharedLocks {
  readonly #words: Int32Array;
  readonly #owner: number;

  /** `worker`: index of the thread, written into the locks that it holds. */
  constructor(words: Int32Array, worker: number) {
    this.#words = words;
    this.#owner = worker + 1;
  }

  lock(at: number): void {
    const words = this.#words;
    for (let tries = 1; ; tries++) {
      if (Atomics.compareExchange(words, at, 0, this.#owner) === 0) return;
      const holder = Atomics.load(words, at);
      if (tries > SPINS && holder !== 0) Atomics.wait(words, at, holder, SLEEP_MS);
    }
  }

  unlock(at: number): void {
    Atomics.store(this.#words, at, 0);
  }

  /** Releases the locks of a thread that died while holding them. Call only after the thread has ended. */
  releaseOf(worker: number): void {
    const words = this.#words;
    for (let at = 0; at < words.length; at++)
      if (Atomics.compareExchange(words, at, worker + 1, 0) === worker + 1) Atomics.notify(words, at);
  }
}
