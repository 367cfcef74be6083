import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Identity } from "./certificates.ts";

/** An HTTP proxy that opens all tunnels to one port of 127.0.0.1, and records the requested names. */
export class ProxyServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly asked: string[] = [];
  /** Status of its responses to CONNECT. */
  status = 200;

  private constructor(server: Server, to: number) {
    this.#server = server;
    server.on("connection", (socket: Socket) => this.#sockets.add(socket));
    server.on("connect", (request: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.on("error", () => {});
      this.asked.push(`${request.url} ${request.headers.host} ${request.headers["proxy-authorization"] ?? ""}`);
      if (this.status !== 200) {
        socket.end(`HTTP/1.1 ${this.status} No\r\ncontent-length: 0\r\n\r\n`);
        return;
      }
      const upstream = connect(to, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        upstream.write(head);
        socket.pipe(upstream).pipe(socket);
      });
      upstream.on("error", () => socket.destroy());
    });
  }

  static async start(to: number, tls?: Identity): Promise<ProxyServer> {
    const server = tls === undefined ? createServer() : createSecureServer({ cert: tls.cert, key: tls.key });
    const proxy = new ProxyServer(server as Server, to);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}
