import { createServer, type Server, type Socket } from "node:net";
import { listenAt } from "../base/listen-address.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { socketAddresses } from "./addresses.ts";
import { sockets } from "./node-internals.ts";
import { SocketReader } from "./read-buffer.ts";
import type { SocketBudget } from "./socket-budget.ts";
import { Transport, type TransportHandler } from "./transport.ts";

interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Several threads listen on the same port and the system spreads connections over them. */
  readonly reusePort: boolean;
  /** TCP keep-alive probes start after this many milliseconds of silence; 0 = off. */
  readonly keepAliveDelay: number;
  /** Shared by all ports of a thread. */
  readonly budget: SocketBudget;
  /** Where the port is recorded as one of the gateway's own. */
  readonly own: OwnSockets;
}

type OnConnection = (transport: Transport) => TransportHandler | undefined;

/**
 * A listening socket, which accepts connections as transports; drain.ts of the proxy decides when it holds them and when it closes.
 * `onConnection` returns the handler of the new transport, or undefined to reject it.
 */
export class Acceptor {
  readonly #server: Server;
  readonly #onConnection: OnConnection;
  readonly #budget: SocketBudget;
  #held: Socket[] | undefined;
  /** Connections accepted so far. */
  accepted = 0;

  private constructor(server: Server, onConnection: OnConnection, budget: SocketBudget) {
    this.#server = server;
    this.#onConnection = onConnection;
    this.#budget = budget;
    server.on("connection", (socket: Socket) => {
      this.accepted++;
      if (this.#held === undefined) accept(socket, onConnection, budget);
      else this.#held.push(socket);
    });
  }

  /** Rejects with the system's error (`EADDRINUSE`, `EACCES`, …). */
  static listen(options: ListenOptions, onConnection: OnConnection): Promise<Acceptor> {
    return listenAt(options.host, (host) => Acceptor.#listen({ ...options, host }, onConnection));
  }

  static #listen(options: ListenOptions, onConnection: OnConnection): Promise<Acceptor> {
    const server = createServer({
      // Nothing is read before the socket has its reader.
      pauseOnConnect: true,
      // Each handler decides what the FIN of its client means.
      allowHalfOpen: true,
      // Heads and small bodies leave in one write already: waiting for more (Nagle) would only delay them.
      noDelay: true,
      keepAlive: options.keepAliveDelay > 0,
      keepAliveInitialDelay: options.keepAliveDelay,
    });
    const acceptor = new Acceptor(server, onConnection, options.budget);
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(
        { host: options.host, port: options.port, reusePort: options.reusePort, backlog: 4096, ipv6Only: false },
        () => {
          server.removeListener("error", reject);
          server.once("close", options.own.addPort("tcp", "bind", acceptor.port));
          // Errors of accept(2), such as no file descriptors left, end that connection only.
          server.on("error", () => {});
          resolve(acceptor);
        },
      );
    });
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** From now on, connections are accepted but not read until `release`. */
  hold(): void {
    this.#held ??= [];
  }

  /** Stops accepting; open connections are not affected. */
  close(): void {
    this.#server.close();
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const socket of held) accept(socket, this.#onConnection, this.#budget);
  }
}

function accept(socket: Socket, onConnection: OnConnection, budget: SocketBudget): void {
  const reader = new SocketReader();
  if (!sockets.readInto(socket, reader)) reader.readPieces(socket);
  if (!budget.admit(socket)) {
    socket.destroy();
    return;
  }
  const transport = new Transport(socket, reader, socketAddresses(socket));
  const handler = onConnection(transport);
  if (handler === undefined) {
    socket.on("error", () => {});
    socket.destroy();
    return;
  }
  transport.start(handler);
}
