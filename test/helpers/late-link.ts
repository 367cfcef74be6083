import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A proxy to a port of 127.0.0.1 that delays what the server sends, including the close. */
export class LateLink implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  /** `delayMs`: from the server to the client. */
  static async start(port: number, delayMs: number): Promise<LateLink> {
    const link = new LateLink(createServer({ allowHalfOpen: true, noDelay: true }));
    link.#server.on("connection", (client) => {
      const server = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
      for (const socket of [client, server]) {
        link.#sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => link.#sockets.delete(socket));
      }
      client.pipe(server);
      server.on("data", (bytes) => setTimeout(() => client.write(bytes), delayMs));
      server.on("end", () => setTimeout(() => client.end(), delayMs));
      // Also that it was reset.
      server.on("close", (failed) => failed && setTimeout(() => client.resetAndDestroy(), delayMs));
    });
    await once(link.#server.listen(0, "127.0.0.1"), "listening");
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }
}
