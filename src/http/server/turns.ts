/**
 * Requests of one connection that are begun in one turn of the event loop. A read can bring thousands, and every other
 * connection of the worker waits while they are answered.
 */
const REQUESTS_PER_TURN = 16;

/** Shares the turns of the event loop between one connection that pipelines and all others. */
export class Turns {
  readonly #goOn: () => void;
  #begun = 0;
  /** The next request has to wait for the next turn. */
  waiting = false;

  /** `goOn` is called in the turn after one that was used up. */
  constructor(goOn: () => void) {
    this.#goOn = goOn;
  }

  /** Whether a request may begin now; else `goOn` follows. */
  begin(): boolean {
    if (this.waiting) return false;
    if (this.#begun < REQUESTS_PER_TURN) {
      this.#begun++;
      return true;
    }
    this.waiting = true;
    setImmediate(() => {
      this.waiting = false;
      this.#begun = 0;
      this.#goOn();
    });
    return false;
  }

  /** Nothing waits to be read. */
  reset(): void {
    this.#begun = 0;
  }
}
