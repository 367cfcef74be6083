import type { ErrorCode } from "../../base/errors.ts";
import type { HttpRequest } from "../../http/message.ts";
import type { ConnectionHost, ServerConnection } from "../../http/server/connection.ts";
import type { ConnectionLimits } from "../../http/server/limits.ts";
import type { Downstream, StreamAcceptor } from "../../http/stream.ts";
import type { Addresses } from "../../net/addresses.ts";
import type { Tunnel } from "./tunnel.ts";

/** The bind, for those of its connections that speak CONNECT alone. */
export class TunnelHost implements ConnectionHost, StreamAcceptor {
  readonly #bind: ConnectionHost;
  readonly open: (downstream: Downstream, request: HttpRequest) => Tunnel;

  constructor(bind: ConnectionHost, open: (downstream: Downstream, request: HttpRequest) => Tunnel) {
    this.#bind = bind;
    this.open = open;
  }

  get frontend(): ConnectionLimits {
    return this.#bind.frontend;
  }

  get acceptor(): StreamAcceptor {
    return this;
  }

  get draining(): boolean {
    return this.#bind.draining;
  }

  get closesIdle(): boolean {
    return this.#bind.closesIdle;
  }

  refused(from: Addresses, code: ErrorCode, detail: string, received: Buffer | undefined): void {
    this.#bind.acceptor.refused(from, code, detail, received);
  }

  onConnectionClose(connection: ServerConnection): void {
    this.#bind.onConnectionClose(connection);
  }

  onFault(error: unknown): void {
    this.#bind.onFault(error);
  }
}
