import { type AddressInfo, createServer, type Server, type Socket, connect as socketConnect } from "node:net";

/** How long a test waits for something that must happen. */
const PATIENCE_MS = 60_000;

/** A message as it arrived on the wire, latin1. */
export interface RawMessage {
  /** Request line or status line. */
  readonly start: string;
  /** Lines of the head after the first, as received. */
  readonly fields: readonly string[];
  /** Without its framing. */
  readonly body: string;
  readonly trailers: readonly string[];
}

/** Status of a response. */
export function statusOf(message: RawMessage): number {
  return Number(message.start.split(" ")[1]);
}

/** All values of a field, in order; `name` in any case. */
export function valuesOf(message: RawMessage, name: string): string[] {
  const prefix = `${name.toLowerCase()}:`;
  return message.fields
    .filter((line) => line.toLowerCase().startsWith(prefix))
    .map((line) => line.slice(prefix.length).trim());
}

/** One end of a TCP connection that a test controls: sends any bytes, waits for any bytes. */
export class RawPeer {
  readonly socket: Socket;
  /** What has arrived and was not taken, latin1. */
  received = "";
  /** How the other side ended: `end` (FIN) or `reset`. */
  ended: "end" | "reset" | undefined;
  readonly #wakers = new Set<() => void>();

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.received += bytes.toString("latin1");
      this.#wake();
    });
    socket.on("end", () => {
      this.ended ??= "end";
      this.#wake();
    });
    socket.on("error", () => {
      this.ended ??= "reset";
      this.#wake();
    });
    socket.on("close", () => {
      this.ended ??= "reset";
      this.#wake();
    });
  }

  /** Connects to a port of 127.0.0.1. The sending side stays open when the other side ends. */
  static connect(port: number): Promise<RawPeer> {
    return new Promise((resolve, reject) => {
      const socket = socketConnect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.removeListener("error", reject);
        resolve(new RawPeer(socket));
      });
    });
  }

  /** Sends a request on its own connection and returns the response. */
  static async ask(port: number, request: string): Promise<RawMessage> {
    const client = await RawPeer.connect(port);
    client.send(request);
    const response = await client.message();
    client.socket.destroy();
    return response;
  }

  send(data: string | Buffer): void {
    if (typeof data === "string") this.socket.write(data, "latin1");
    else this.socket.write(data);
  }

  /** Sends FIN. */
  end(): void {
    this.socket.end();
  }

  /** Sends RST. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  /** Resolves when `condition` is true; checked whenever something arrives. Rejects at the end or after a bounded time. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!condition()) {
      if (this.ended !== undefined || Date.now() > deadline)
        throw new Error(`waited in vain for ${what}; ended: ${this.ended}; received: ${this.received.slice(0, 2000)}`);
      await new Promise<void>((resolve) => {
        const waker = (): void => {
          clearTimeout(timer);
          this.#wakers.delete(waker);
          resolve();
        };
        const timer = setTimeout(waker, 100);
        this.#wakers.add(waker);
      });
    }
  }

  /** Waits as long as a connection may be idle, which is until it ends: then false. */
  async hasMore(): Promise<boolean> {
    while (this.received === "" && this.ended === undefined)
      await new Promise<void>((resolve) => {
        const waker = (): void => {
          this.#wakers.delete(waker);
          resolve();
        };
        this.#wakers.add(waker);
      });
    return this.received !== "";
  }

  /** Takes everything up to and including `text`. */
  async take(text: string): Promise<string> {
    await this.until(() => this.received.includes(text), JSON.stringify(text));
    const end = this.received.indexOf(text) + text.length;
    const taken = this.received.slice(0, end);
    this.received = this.received.slice(end);
    return taken;
  }

  /** Takes the next message; `bodiless` for messages without a body whatever their fields say, such as responses to HEAD. */
  async message(bodiless = false): Promise<RawMessage> {
    const head = (await this.take("\r\n\r\n")).slice(0, -4);
    const [start = "", ...lines] = head.split("\r\n");
    // Every request of a gateway has it; http/loop.test.ts looks at it.
    const fields = lines.filter((line) => !line.startsWith("cdn-loop: tracegate;"));
    const message = { start, fields, body: "", trailers: [] };
    const isResponse = start.startsWith("HTTP/");
    if (bodiless || (isResponse && /^HTTP\/1\.1 (1\d\d|204|304)/.test(start))) return message;
    if (valuesOf(message, "transfer-encoding").length > 0) return { ...message, ...(await this.#chunked()) };
    const [length] = valuesOf(message, "content-length");
    if (length !== undefined) return { ...message, body: await this.#bytes(Number(length)) };
    if (!isResponse) return message;
    await this.closed();
    return { ...message, body: this.#cut(this.received.length) };
  }

  /** Resolves when the other side has ended, with how. */
  async closed(): Promise<"end" | "reset"> {
    await this.until(() => this.ended !== undefined, "the end of the connection");
    return this.ended as "end" | "reset";
  }

  async #bytes(length: number): Promise<string> {
    await this.until(() => this.received.length >= length, `${length} bytes`);
    return this.#cut(length);
  }

  #cut(length: number): string {
    const text = this.received.slice(0, length);
    this.received = this.received.slice(length);
    return text;
  }

  async #chunked(): Promise<{ body: string; trailers: string[] }> {
    let body = "";
    for (;;) {
      const size = Number.parseInt(await this.take("\r\n"), 16);
      if (size === 0) break;
      body += (await this.#bytes(size + 2)).slice(0, -2);
    }
    const trailers: string[] = [];
    for (let line = await this.take("\r\n"); line !== "\r\n"; line = await this.take("\r\n"))
      trailers.push(line.slice(0, -2));
    return { body, trailers };
  }

  #wake(): void {
    for (const waker of [...this.#wakers]) waker();
  }
}

/** An upstream of a test: every connection is a raw peer; `serve`, if given, runs for each. */
export class RawUpstream {
  readonly connections: RawPeer[] = [];
  readonly server: Server;
  readonly #serve: ((peer: RawPeer) => Promise<void>) | undefined;
  readonly #failures: unknown[] = [];

  private constructor(serve?: (peer: RawPeer) => Promise<void>) {
    this.#serve = serve;
    this.server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const peer = new RawPeer(socket);
      this.connections.push(peer);
      this.#serve?.(peer).catch((error: unknown) => {
        if (peer.ended === undefined) this.#failures.push(error);
      });
    });
  }

  /** Listens on a free port of 127.0.0.1, or on a path. */
  static async listen(serve?: (peer: RawPeer) => Promise<void>, path?: string): Promise<RawUpstream> {
    const upstream = new RawUpstream(serve);
    await new Promise<void>((resolve) => {
      if (path !== undefined) upstream.server.listen(path, resolve);
      else upstream.server.listen(0, "127.0.0.1", resolve);
    });
    return upstream;
  }

  /** Responds to every request with the result of `answer`, a whole response as text. */
  static answering(answer: (request: RawMessage) => string | Promise<string>, path?: string): Promise<RawUpstream> {
    return RawUpstream.listen(async (peer) => {
      while (await peer.hasMore()) peer.send(await answer(await peer.message()));
    }, path);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** The connection number `index`, once it has been accepted. */
  async connection(index = 0): Promise<RawPeer> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const peer = this.connections[index];
      if (peer !== undefined) return peer;
      if (Date.now() > deadline) throw new Error(`waited too long for connection ${index}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { socket } of this.connections) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}

/** A port of 127.0.0.1 where nothing listens. */
export async function closedPort(): Promise<number> {
  const upstream = await RawUpstream.listen();
  const { port } = upstream;
  await upstream[Symbol.asyncDispose]();
  return port;
}

/** A response with Content-Length. */
export function reply(body: string, fields: readonly string[] = [], status = "200 OK"): string {
  return [`HTTP/1.1 ${status}`, ...fields, `Content-Length: ${body.length}`, "", body].join("\r\n");
}

/** Bytes that the system has not taken from a test's own socket. */
export function queueOf(peer: RawPeer): number {
  const { _handle } = peer.socket as unknown as { _handle: { writeQueueSize: number } | null };
  return _handle?.writeQueueSize ?? 0;
}

/** Waits until a value has not changed for a while. */
export async function settled(value: () => number): Promise<void> {
  let last = -1;
  let same = 0;
  while (same < 20) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    const now = value();
    same = now === last ? same + 1 : 0;
    last = now;
  }
}
