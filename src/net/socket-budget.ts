interface Closable {
  once(event: "close", listener: () => void): unknown;
}

/**
 * How many client connections one worker may have on all of its ports. Without it they could use up the file descriptors of the
 * process, and then nothing of the gateway would answer, its readiness server included.
 */
export class SocketBudget {
  readonly #limit: number;
  readonly #onRefused: () => void;
  #open = 0;

  /** `onRefused` is called for each connection that there is no room for. */
  constructor(limit = Number.POSITIVE_INFINITY, onRefused: () => void = () => {}) {
    this.#limit = limit;
    this.#onRefused = onRefused;
  }

  /** Counts a connection until it closes; false when there is no room for it. */
  admit(socket: Closable): boolean {
    if (this.#open >= this.#limit) {
      this.#onRefused();
      return false;
    }
    this.#open++;
    socket.once("close", () => {
      this.#open--;
    });
    return true;
  }
}
