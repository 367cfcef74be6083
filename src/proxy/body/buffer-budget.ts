/** Body bytes that a worker holds for policies, over all its requests and responses. */
export class BufferBudget {
  used = 0;
}

/**
 * What one exchange uses of the budget of its worker. Everything is returned when the exchange is over, however it ended; bytes that
 * are still held then are freed with the exchange.
 */
export class BufferShare {
  readonly #budget: BufferBudget;
  readonly #limit: number;
  #taken = 0;
  #closed = false;

  /** `limit`: bytes for the worker as a whole. */
  constructor(budget: BufferBudget, limit: number) {
    this.#budget = budget;
    this.#limit = limit;
  }

  /** False = the worker holds too much already, and nothing was taken. */
  take(bytes: number): boolean {
    if (this.#closed) return true;
    if (this.#budget.used + bytes > this.#limit) return false;
    this.#budget.used += bytes;
    this.#taken += bytes;
    return true;
  }

  give(bytes: number): void {
    const given = Math.min(bytes, this.#taken);
    this.#taken -= given;
    this.#budget.used -= given;
  }

  /** The exchange is over. */
  close(): void {
    this.give(this.#taken);
    this.#closed = true;
  }
}
