/** Something with coarse deadlines, checked once a second. */
export interface Sweepable {
  /** `now` is `performance.now()`. */
  sweep(now: number): void;
}

/**
 * One timer for all connections of a thread. Re-arming a timer per connection with every request costs more than checking ten
 * thousand connections once a second (about 0.2 ms). Its items are long-lived, such as a worker's data plane, and sweep their
 * connections.
 */
export class Sweeper {
  readonly #items = new Set<Sweepable>();
  readonly #timer: NodeJS.Timeout;

  constructor(intervalMs = 1000) {
    this.#timer = setInterval(() => this.#run(), intervalMs);
    this.#timer.unref();
  }

  add(item: Sweepable): void {
    this.#items.add(item);
  }

  delete(item: Sweepable): void {
    this.#items.delete(item);
  }

  get size(): number {
    return this.#items.size;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #run(): void {
    const now = performance.now();
    for (const item of this.#items) item.sweep(now);
  }
}
