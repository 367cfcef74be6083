import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** How every response of HTTP/1.1 begins. */
const BEGIN = "HTTP/1.1 ";

/** A client that pipelines: it sends requests without waiting for the responses before, so one process can fill the rings of a gateway. */
export class PipeliningClient {
  readonly #sockets: readonly Socket[];
  #next = 0;
  /** Responses that have begun to arrive. */
  answered = 0;
  #ended = false;
  #wake: () => void = () => {};

  private constructor(sockets: readonly Socket[]) {
    this.#sockets = sockets;
    for (const socket of sockets) {
      let end = "";
      socket.on("data", (bytes: Buffer) => {
        const text = end + bytes.toString("latin1");
        this.answered += text.split(BEGIN).length - 1;
        // It may be cut in two, but is not to be counted twice.
        end = text.slice(Math.max(text.lastIndexOf(BEGIN) + 1, text.length - BEGIN.length + 1));
        this.#wake();
      });
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#ended = true;
        this.#wake();
      });
    }
  }

  static async connect(port: number, connections: number): Promise<PipeliningClient> {
    const sockets = Array.from({ length: connections }, () => connect({ port, host: "127.0.0.1", noDelay: true }));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    return new PipeliningClient(sockets);
  }

  /** Sends a GET for each of the paths, on one of the connections. */
  send(paths: readonly string[]): void {
    const socket = this.#sockets[this.#next++ % this.#sockets.length];
    socket?.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`).join(""));
  }

  /** Resolves once there are so many responses in all. Rejects if a connection ends before that. */
  async until(answered: number): Promise<void> {
    while (this.answered < answered) {
      if (this.#ended) throw new Error(`a connection ended after ${this.answered} of ${answered} responses`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
