import type { Server } from "node:http";
import type { Socket } from "node:net";

interface AdmissionLimits {
  readonly connections: number;
  /** At most this many of them from one client address; clients of a unix socket have none. */
  readonly perAddress: number;
}

interface Connection {
  readonly socket: Socket;
  readonly address: string | undefined;
  /** Requests in progress. */
  requests: number;
}

/**
 * Bounds the connections of a server so that idle ones cannot lock out others: when it is full, a new connection
 * replaces the one that has waited longest for a request to arrive. Connections with a request in progress are never replaced;
 * when there are no others, the new connection is closed at once.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #open = new Map<Socket, Connection>();
  readonly #perAddress = new Map<string, number>();
  /** Connections without a request in progress, longest wait first. */
  readonly #waiting = new Set<Connection>();

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** Takes effect before the listeners that `server` already has for new connections. */
  guard(server: Server): void {
    const listeners = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => {
      if (this.#admit(socket)) for (const listener of listeners) listener.call(server, socket);
      else socket.destroy();
    });
    server.on("request", ({ socket }, response) => {
      const connection = this.#open.get(socket);
      if (connection === undefined) return;
      connection.requests++;
      this.#waiting.delete(connection);
      response.once("close", () => {
        connection.requests--;
        if (connection.requests === 0 && this.#open.has(socket)) this.#waiting.add(connection);
      });
    });
  }

  #admit(socket: Socket): boolean {
    const { connections, perAddress } = this.#limits;
    const address = socket.remoteAddress;
    if (address !== undefined && this.#countOf(address) >= perAddress && !this.#evict(address)) return false;
    if (this.#open.size >= connections && !this.#evict()) return false;
    const connection = { socket, address, requests: 0 };
    this.#open.set(socket, connection);
    this.#waiting.add(connection);
    if (address !== undefined) this.#perAddress.set(address, this.#countOf(address) + 1);
    socket.once("close", () => this.#forget(connection));
    return true;
  }

  /** Closes the connection that has waited longest, of one address or of all; false if none is waiting. */
  #evict(address?: string): boolean {
    for (const connection of this.#waiting) {
      if (address !== undefined && connection.address !== address) continue;
      this.#forget(connection);
      connection.socket.destroy();
      return true;
    }
    return false;
  }

  #forget(connection: Connection): void {
    const { socket, address } = connection;
    if (!this.#open.delete(socket)) return;
    this.#waiting.delete(connection);
    if (address === undefined) return;
    const left = this.#countOf(address) - 1;
    if (left > 0) this.#perAddress.set(address, left);
    else this.#perAddress.delete(address);
  }

  #countOf(address: string): number {
    return this.#perAddress.get(address) ?? 0;
  }
}
