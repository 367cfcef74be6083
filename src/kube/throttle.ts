import { setTimeout as delay } from "node:timers/promises";

/** A token bucket for requests: `burst` at once, then `perSecond`. Callers wait in their order. */
export class Throttle {
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #at = performance.now();

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
  }

  /** Resolves when a request may be sent. @throws AbortError when `signal` aborts */
  async take(signal?: AbortSignal): Promise<void> {
    const now = performance.now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond) - 1;
    this.#at = now;
    if (this.#tokens >= 0) return;
    // Negative tokens are the requests that wait already.
    const ms = (-this.#tokens / this.#perSecond) * 1000;
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      this.#tokens++;
      throw error;
    }
  }
}
