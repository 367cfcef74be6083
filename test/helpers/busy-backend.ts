import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A backend for tests under load. Its responses take up to 10 ms, so that requests are in progress at any moment. */
export class BusyBackend implements Disposable {
  /** `host:port` */
  readonly address: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Every response is `complete`. */
  static async start(): Promise<BusyBackend> {
    const server = createServer((incoming, answer) => {
      incoming.resume();
      setTimeout(() => answer.end("complete"), Math.random() * 10);
    });
    server.keepAliveTimeout = 0;
    await once(server.listen(0, "127.0.0.1"), "listening");
    return new BusyBackend(server);
  }

  [Symbol.dispose](): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
