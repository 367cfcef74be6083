import { Acceptor, type ListenOptions } from "../net/acceptor.ts";
import type { Transport, TransportHandler } from "../net/transport.ts";

/** The listening socket of a bind and the steps of its shutdown, which drain.ts takes; bind-server.ts has the connections. */
export class ListeningPort {
  #acceptor: Acceptor | undefined;
  /** Responses ask clients to close their connections. */
  draining = false;
  /** Connections without a request are closed. */
  closesIdle = false;

  /** The port that is listened on; 0 = none. */
  get listening(): number {
    return this.#acceptor?.port ?? 0;
  }

  /** Connections accepted so far. */
  get accepted(): number {
    return this.#acceptor?.accepted ?? 0;
  }

  /** From now on every response asks its client to leave; connections are still accepted. */
  announceDrain(): void {
    this.draining = true;
  }

  /** Connections are still accepted, but their requests wait for `serveHeld`. */
  holdConnections(): void {
    this.#acceptor?.hold();
  }

  stopListening(): void {
    this.#acceptor?.close();
  }

  serveHeld(): void {
    this.#acceptor?.release();
  }

  /** Closes connections without a request, now and whenever one becomes idle. */
  closeIdle(): void {
    this.closesIdle = true;
  }

  /** All steps at once, for a bind that the configuration no longer has. */
  drain(): void {
    this.announceDrain();
    this.stopListening();
    this.closeIdle();
  }

  /** Rejects with the system's error when the port cannot be had. */
  protected async startListening(
    options: ListenOptions,
    onConnection: (transport: Transport) => TransportHandler | undefined,
  ): Promise<void> {
    this.#acceptor = await Acceptor.listen(options, onConnection);
  }
}
