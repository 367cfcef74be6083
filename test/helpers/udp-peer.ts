import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";

/** How long a test waits for a datagram that must come. */
const PATIENCE_MS = 60_000;
/** How long a datagram may take before it can have been lost. */
const RESEND_MS = 1000;

/** A UDP socket of a test: a client, or a server that responds to each datagram. */
export class UdpPeer {
  readonly socket: Socket;
  /** Datagrams that have arrived, with their ports, until they are taken. */
  readonly received: { readonly text: string; readonly port: number }[] = [];
  #onReceived: () => void = () => {};

  private constructor(socket: Socket, answer: ((text: string) => string | undefined) | undefined) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("message", (bytes: Buffer, from: RemoteInfo) => {
      const text = bytes.toString("latin1");
      this.received.push({ text, port: from.port });
      this.#onReceived();
      const answered = answer?.(text);
      if (answered !== undefined) socket.send(Buffer.from(answered, "latin1"), from.port, from.address);
    });
  }

  /** `answer`: what a server sends back for a datagram. */
  static async open(answer?: (text: string) => string | undefined, host = "127.0.0.1", port = 0): Promise<UdpPeer> {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    const peer = new UdpPeer(socket, answer);
    socket.bind(port, host);
    await once(socket, "listening");
    return peer;
  }

  get port(): number {
    return this.socket.address().port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  send(text: string, port: number, host = "127.0.0.1"): void {
    this.socket.send(Buffer.from(text, "latin1"), port, host);
  }

  /** The next datagram. Rejects after a bounded time. */
  async next(): Promise<{ readonly text: string; readonly port: number }> {
    const next = await this.#nextWithin(PATIENCE_MS);
    if (next === undefined) throw new Error("no datagram has come");
    return next;
  }

  /** Sends a datagram, again if the kernel has dropped packets since, and waits for the text of the response. */
  async ask(text: string, port: number, host?: string): Promise<string> {
    const deadline = Date.now() + PATIENCE_MS;
    do {
      const dropped = await packetsDropped();
      this.send(text, port, host);
      do {
        const next = await this.#nextWithin(RESEND_MS);
        if (next !== undefined) return next.text;
      } while (Date.now() < deadline && (await packetsDropped()) === dropped);
    } while (Date.now() < deadline);
    throw new Error(`no response to "${text}" has come`);
  }

  async #nextWithin(milliseconds: number): Promise<{ readonly text: string; readonly port: number } | undefined> {
    const deadline = Date.now() + milliseconds;
    for (;;) {
      const first = this.received.shift();
      if (first !== undefined) return first;
      const left = deadline - Date.now();
      if (left <= 0) return undefined;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#onReceived = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.socket, "close");
    this.socket.close();
    await closed;
  }
}

/** Packets that Linux has dropped because a processor was too busy to take them, also on loopback; always 0 on other systems. */
async function packetsDropped(): Promise<number> {
  const processors = await readFile("/proc/net/softnet_stat", "latin1").catch(() => "");
  return processors.split("\n").reduce((sum, line) => sum + Number.parseInt(line.split(" ")[1] ?? "0", 16), 0);
}
