import { createServer, type Server, type Socket } from "node:net";
import { listenAt } from "../base/listen-address.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { listenAtFile, type SocketFile } from "../base/socket-file.ts";
import { type Addresses, socketAddresses } from "./addresses.ts";
import { listeningFd, sockets } from "./node-internals.ts";
import { SocketReader } from "./read-buffer.ts";
import type { SocketBudget } from "./socket-budget.ts";
import { Transport, type TransportHandler } from "./transport.ts";

/** Where to listen. `mode` has the permissions of a socket file, which must not exist. */
type ListenAt = { readonly host: string; readonly port: number } | { readonly path: string; readonly mode: number };

interface ListenOptions {
  readonly at: ListenAt;
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

const BACKLOG = 4096;

/**
 * A listening socket, which accepts connections as transports; drain.ts of the proxy decides when it holds them and when it closes.
 * `onConnection` returns the handler of the new transport, or undefined to reject it.
 */
export class Acceptor {
  readonly #server: Server;
  readonly #options: ListenOptions;
  readonly #onConnection: OnConnection;
  #file: SocketFile | undefined;
  #held: Socket[] | undefined;
  #adopted: number | undefined;
  /** Connections accepted so far. */
  accepted = 0;

  private constructor(options: ListenOptions, onConnection: OnConnection) {
    this.#options = options;
    this.#onConnection = onConnection;
    this.#server = createServer({
      // Nothing is read before the socket has its reader.
      pauseOnConnect: true,
      // Each handler decides what the FIN of its client means.
      allowHalfOpen: true,
      // Heads and small bodies leave in one write already: waiting for more (Nagle) would only delay them.
      noDelay: true,
      keepAlive: options.keepAliveDelay > 0,
      keepAliveInitialDelay: options.keepAliveDelay,
    });
    this.#server.on("connection", (socket: Socket) => {
      this.accepted++;
      if (this.#held === undefined) this.#accept(socket);
      else this.#held.push(socket);
    });
  }

  /** Rejects with the system's error (`EADDRINUSE`, `EACCES`, …). */
  static async listen(options: ListenOptions, onConnection: OnConnection): Promise<Acceptor> {
    const { at, reusePort } = options;
    if ("path" in at) {
      const acceptor = new Acceptor(options, onConnection);
      await acceptor.#listenAtFile(at.path, at.mode);
      return acceptor;
    }
    return listenAt(at.host, async (host) => {
      const acceptor = new Acceptor(options, onConnection);
      await acceptor.#listen({ host, port: at.port, reusePort, ipv6Only: false });
      acceptor.#server.once("close", options.own.addPort("tcp", "bind", acceptor.port, host));
      return acceptor;
    });
  }

  /** A socket that another process has opened at `at`; connections are accepted from `begin` on. */
  static adopt(fd: number, options: ListenOptions, onConnection: OnConnection): Acceptor {
    const acceptor = new Acceptor(options, onConnection);
    acceptor.#adopted = fd;
    return acceptor;
  }

  /** For an adopted socket. An error ends it, and is passed to `onError`. */
  begin(onError: (error: Error) => void): void {
    const { at, own } = this.#options;
    const server = this.#server;
    const fd = this.#adopted;
    if (fd === undefined || server.listening) return;
    server.on("error", onError);
    server.listen({ fd, backlog: BACKLOG }, () => {
      // The file of a socket stays: systemd, or a process that takes over in turn, may have the socket too.
      server.once("close", "path" in at ? own.addUnix(at.path) : own.addPort("tcp", "bind", at.port, at.host));
    });
  }

  async #listenAtFile(path: string, mode: number): Promise<void> {
    this.#file = await listenAtFile(this.#server, path, mode, { backlog: BACKLOG });
    this.#server.on("error", () => {});
    try {
      this.#server.once("close", this.#options.own.addUnix(path));
    } catch (error) {
      this.#server.close();
      throw error;
    }
  }

  #listen(options: object): Promise<void> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ ...options, backlog: BACKLOG }, () => {
        server.removeListener("error", reject);
        // Errors of accept(2), such as no file descriptors left, end that connection only.
        server.on("error", () => {});
        resolve();
      });
    });
  }

  /** 0 for a Unix socket. */
  get port(): number {
    const { at } = this.#options;
    if (this.#adopted !== undefined && "port" in at) return at.port;
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Where it was told to listen, with the port that the system has chosen, and the file descriptor. */
  get socket(): { readonly at: ListenAt; readonly fd: number | undefined } {
    const { at } = this.#options;
    return { at: "path" in at ? at : { ...at, port: this.port }, fd: listeningFd(this.#server) };
  }

  /** From now on, connections are accepted but not read until `release`. */
  hold(): void {
    this.#held ??= [];
  }

  /** Stops accepting; open connections are not affected. `handedOver`: another process also has the socket and keeps serving. */
  close(handedOver = false): void {
    if (handedOver) this.#file?.keep();
    this.#server.close();
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const socket of held) this.#accept(socket);
  }

  #accept(socket: Socket): void {
    const reader = new SocketReader();
    if (!sockets.readInto(socket, reader)) reader.readPieces(socket);
    if (!this.#options.budget.admit(socket)) {
      socket.destroy();
      return;
    }
    const transport = new Transport(socket, reader, this.#addressesOf(socket));
    const handler = this.#onConnection(transport);
    if (handler === undefined) {
      socket.on("error", () => {});
      socket.destroy();
      return;
    }
    transport.start(handler);
  }

  /** A client of a Unix socket has no address: the empty text is in no network, and equals no address. */
  #addressesOf(socket: Socket): Addresses {
    const { at } = this.#options;
    const addresses = socketAddresses(socket);
    return "path" in at ? { ...addresses, localAddress: `unix:${at.path}` } : addresses;
  }
}
