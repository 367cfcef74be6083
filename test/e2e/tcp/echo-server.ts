import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** A server that greets with its name and then sends back what it gets. */
export class EchoServer implements AsyncDisposable {
  readonly port: number;
  /** As a backend's `host`. */
  readonly address: string;
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, name: string) {
    this.#server = server;
    const address = server.address() as AddressInfo | string;
    this.port = typeof address === "string" ? 0 : address.port;
    this.address = typeof address === "string" ? `unix:${address}` : `127.0.0.1:${address.port}`;
    server.on("connection", (socket: Socket) => {
      this.connections++;
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
      socket.write(name);
      socket.pipe(socket);
    });
  }

  /** On a free port of 127.0.0.1, or on a Unix socket. */
  static async start(name: string, path?: string): Promise<EchoServer> {
    const server = createServer();
    if (path === undefined) server.listen(0, "127.0.0.1");
    else server.listen(path);
    await once(server, "listening");
    return new EchoServer(server, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}
