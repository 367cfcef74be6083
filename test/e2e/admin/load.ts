import { connect, type Socket } from "node:net";

const REQUEST = "GET /load HTTP/1.1\r\nHost: a.test\r\n\r\n";

/** Keep-alive clients that send each request as soon as they have the response to the one before, until disposed. */
export class Load {
  /** Statuses of the responses. */
  readonly statuses = new Set<number>();
  /** Clients whose connection was closed or broken by the gateway. */
  broken = 0;
  #answers = 0;
  #stopping = false;
  readonly #sockets = new Set<Socket>();
  readonly #waiting = new Set<() => void>();

  /** Resolves when every client has had a response. All responses must be short and have the body `hello`. */
  static async start(port: number, clients: number): Promise<Load> {
    const load = new Load();
    await Promise.all(Array.from({ length: clients }, () => load.#client(port)));
    return load;
  }

  get answers(): number {
    return this.#answers;
  }

  /** Resolves after `count` more responses. */
  async answered(count: number): Promise<void> {
    const until = this.#answers + count;
    const deadline = Date.now() + 30_000;
    while (this.#answers < until) {
      if (Date.now() > deadline) throw new Error(`${this.#answers} answers, ${this.broken} connections broken`);
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
        setTimeout(resolve, 100).unref();
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    const closed = [...this.#sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closed);
  }

  #client(port: number): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      this.#sockets.add(socket);
      let text = "";
      socket.on("connect", () => socket.write(REQUEST));
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        if (!this.#stopping) this.broken++;
        resolve();
      });
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
        if (!/\r\n\r\n.*(hello|found|call.*)$/s.test(text)) return;
        this.statuses.add(Number(text.slice(9, 12)));
        text = "";
        this.#answers++;
        resolve();
        for (const wake of this.#waiting) wake();
        this.#waiting.clear();
        if (!this.#stopping) socket.write(REQUEST);
      });
    });
  }
}
