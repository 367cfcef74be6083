import { setTimeout as sleep } from "node:timers/promises";

/** A look is followed by a pause of this many times its own duration. */
const PAUSE = 2;

/**
 * A look at the system that all who ask at the same time share: a flood of connections costs one look at a time, not one for each. Looks
 * take at most a third of the time: with 15,000 open sockets one takes 200 ms, of which 80 ms are CPU of the main thread.
 */
export class SharedLook<T> {
  readonly #look: () => Promise<T>;
  #running: Promise<T> | undefined;
  #next: Promise<T> | undefined;
  /** `performance.now()` ms before which no look begins. */
  #pausedUntil = 0;

  constructor(look: () => Promise<T>) {
    this.#look = look;
  }

  /** The result of a look that begins after this call: one that has begun may have missed what is asked for. */
  next(): Promise<T> {
    if (this.#running === undefined && performance.now() >= this.#pausedUntil) return this.#run();
    this.#next ??= this.#later();
    return this.#next;
  }

  async #later(): Promise<T> {
    await this.#running?.catch(() => {});
    await sleep(Math.max(0, this.#pausedUntil - performance.now()));
    this.#next = undefined;
    return this.#run();
  }

  #run(): Promise<T> {
    const start = performance.now();
    const running = this.#look().finally(() => {
      const end = performance.now();
      this.#pausedUntil = end + PAUSE * (end - start);
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }
}
