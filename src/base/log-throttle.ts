/** Lets the first of many equal messages through, then one in each interval: what fails for everyone must not fill the log. */
export class LogThrottle {
  readonly #interval: number;
  readonly #now: () => number;
  #next = Number.NEGATIVE_INFINITY;
  #kept = 0;

  /** `interval` in ms; `now` in ms, of a clock that is never set. */
  constructor(interval: number, now: () => number = () => performance.now()) {
    this.#interval = interval;
    this.#now = now;
  }

  /** Calls `tell` with the number of times that it was not called since the last, or does not. */
  tell(tell: (kept: number) => void): void {
    const now = this.#now();
    if (now < this.#next) {
      this.#kept++;
      return;
    }
    const kept = this.#kept;
    this.#kept = 0;
    this.#next = now + this.#interval;
    tell(kept);
  }
}
