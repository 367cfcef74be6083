/** Runs a few pieces of work at a time; the others wait in their order. */
export class ConcurrencyLimit {
  readonly #limit: number;
  #running = 0;
  #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    // What ends lets the next one in without giving up its place, so that nothing else can take it in between.
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  /** Starts everything that waits, whatever the limit: for work that ends at once because it has been aborted. */
  releaseAll(): void {
    this.#running += this.#waiting.length;
    for (const start of this.#waiting.splice(0)) start();
  }
}
