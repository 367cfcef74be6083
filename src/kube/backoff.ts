/** Growing pauses with jitter, so that many clients do not return at the same moment. */
export class Backoff {
  readonly #first: number;
  readonly #most: number;
  readonly #random: () => number;
  #next: number;

  /** Milliseconds of the first pause and of the longest; each is twice the one before. */
  constructor(first: number, most: number, random: () => number = Math.random) {
    this.#first = first;
    this.#most = most;
    this.#random = random;
    this.#next = first;
  }

  /** Milliseconds of the next pause: between half of its length and all of it. */
  next(): number {
    const length = this.#next;
    this.#next = Math.min(this.#most, length * 2);
    return length * (0.5 + this.#random() / 2);
  }

  /** After a success: the next pause is short again. */
  reset(): void {
    this.#next = this.#first;
  }
}
