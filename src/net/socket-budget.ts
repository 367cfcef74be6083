/** Whether a connection comes from a client, or goes to a backend or callout; `udp`: the socket of a session of UDP. */
export type SocketKind = "client" | "upstream" | "udp";

/** Part of the budget without UDP that clients or backends may use, so that some remains for the other kind. */
const SHARE = 0.75;
/** Part that UDP may use: its clients can forge their addresses, and each address takes a socket. */
const UDP_SHARE = 0.25;

interface Closable {
  on(event: "close", listener: () => void): unknown;
}

/**
 * How many connections one worker may have, on all of its ports and in all of its pools. Otherwise they could use up the file
 * descriptors of the process, and then not even the readiness server could respond.
 */
export class SocketBudget {
  readonly #limit: number;
  readonly #udpShare: number;
  readonly #onRejected: (kind: SocketKind) => void;
  readonly #onClose: Readonly<Record<"client" | "udp", () => void>> = {
    client: () => {
      this.used.client--;
    },
    udp: () => {
      this.used.udp--;
    },
  };
  /** Closes an idle connection to a backend; false if all are in use. Set by the owner of the pools. */
  closeIdle: () => boolean = () => false;
  /** Ends a session of UDP in favor of a client at this address; false if there is none to end. `most`: room for sessions. Set by the owner of the ports. */
  endSession: (client: string, most: number) => boolean = () => false;
  /** Connections that are open or being opened. */
  readonly used: Record<SocketKind, number> = { client: 0, upstream: 0, udp: 0 };

  /** `limit`: of all kinds together; UDP may use a quarter, each of the others three quarters of the rest. `onRejected` is called for each connection without room. */
  constructor(limit = Number.POSITIVE_INFINITY, onRejected: (kind: SocketKind) => void = () => {}) {
    this.#limit = limit;
    this.#udpShare = Math.max(1, Math.floor(limit * UDP_SHARE));
    this.#onRejected = onRejected;
  }

  /** Counts a client connection until it closes; false if there is no room. */
  admit(socket: Closable): boolean {
    const admitted = this.take("client");
    if (admitted) socket.on("close", this.#onClose.client);
    return admitted;
  }

  /** Counts the socket of a session until it closes; false if there is no room. It may take the place of another session. */
  admitSession(socket: Closable, client: string): boolean {
    const admitted = this.take("udp", () => this.endSession(client, this.#udpShare));
    if (admitted) socket.on("close", this.#onClose.udp);
    return admitted;
  }

  /**
   * Counts a connection that is about to be opened; false if there is no room for it. One to a backend may take the place of an idle
   * one, which is closed. `makeRoom` closes one of the same kind.
   */
  take(kind: SocketKind, makeRoom = () => kind === "upstream" && this.closeIdle()): boolean {
    const { used } = this;
    const share = kind === "udp" ? this.#udpShare : Math.max(1, Math.floor((this.#limit - used.udp) * SHARE));
    const room = used[kind] < share && used.client + used.upstream + used.udp < this.#limit;
    if (room || makeRoom()) {
      used[kind]++;
      return true;
    }
    this.#onRejected(kind);
    return false;
  }
}
