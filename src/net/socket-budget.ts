/** Whether a connection comes from a client, or goes to a backend or callout. */
export type SocketKind = "client" | "upstream";

/** Part of the budget that one kind may use, so that some is left for the other. */
const SHARE = 0.75;

interface Closable {
  on(event: "close", listener: () => void): unknown;
}

/**
 * How many connections one worker may have, on all of its ports and in all of its pools. Otherwise they could use up the file
 * descriptors of the process, and then not even the readiness server could respond.
 */
export class SocketBudget {
  readonly #limit: number;
  readonly #share: number;
  readonly #onRejected: (kind: SocketKind) => void;
  readonly #onClientClose = (): void => {
    this.used.client--;
  };
  /** Closes an idle connection to a backend; false if all are in use. Set by the owner of the pools. */
  closeIdle: () => boolean = () => false;
  /** Connections that are open or being opened. */
  readonly used: Record<SocketKind, number> = { client: 0, upstream: 0 };

  /** `limit`: of both kinds together; one kind may use three quarters. `onRejected` is called for each connection that there is no room for. */
  constructor(limit = Number.POSITIVE_INFINITY, onRejected: (kind: SocketKind) => void = () => {}) {
    this.#limit = limit;
    this.#share = Math.max(1, Math.floor(limit * SHARE));
    this.#onRejected = onRejected;
  }

  /** Counts a connection of a client until it closes; false if there is no room for it. */
  admit(socket: Closable): boolean {
    const admitted = this.take("client");
    if (admitted) socket.on("close", this.#onClientClose);
    return admitted;
  }

  /**
   * Counts a connection that is about to be opened; false if there is no room for it. One to a backend may take the place of an idle
   * one, which is closed.
   */
  take(kind: SocketKind): boolean {
    const { used } = this;
    const room = used[kind] < this.#share && used.client + used.upstream < this.#limit;
    if (room || (kind === "upstream" && this.closeIdle())) {
      used[kind]++;
      return true;
    }
    this.#onRejected(kind);
    return false;
  }
}
