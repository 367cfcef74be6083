/**
 * How many connections the pools of a worker may have together. A request that needs one more fails at once: connections could
 * otherwise use up the file descriptors of the process, and then nothing of the gateway would answer, its readiness server included.
 */
export class ConnectionBudget {
  readonly #limit: number;
  readonly #onRefused: () => void;
  /** Connections that are open or being opened. */
  used = 0;

  /** `onRefused` is called for each connection that there is no room for. */
  constructor(limit = Number.POSITIVE_INFINITY, onRefused: () => void = () => {}) {
    this.#limit = limit;
    this.#onRefused = onRefused;
  }

  /** Whether there is room for all that are used, the one that is about to be opened among them. */
  hasRoom(): boolean {
    if (this.used <= this.#limit) return true;
    this.#onRefused();
    return false;
  }
}
