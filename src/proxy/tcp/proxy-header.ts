import { parseProxyHeader } from "../../base/proxy-protocol/header.ts";
import type { ProxyProtocol } from "../../ir/ir.ts";
import { ByteQueue } from "../../net/byte-queue.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import type { LiveConnection } from "./live-connection.ts";

/** Milliseconds from the accepted connection to the end of its PROXY header (reference 3.32). */
const HEADER_TIMEOUT_MS = 5_000;
const NOTHING = Buffer.alloc(0);

/** The bind of a connection that begins with a PROXY header. */
export interface ProxyHeaderHost {
  /**
   * The transport has the client's addresses now and needs another handler, which gets `early` first: it was read behind
   * the header.
   */
  onProxyHeader(reader: ProxyHeaderReader, transport: Transport, early: Buffer): void;
  /** The connection is closed or about to be. */
  onProxyFailure(reader: ProxyHeaderReader, message: string): void;
  onFault(error: unknown): void;
}

/** A new connection of a bind whose clients come through a proxy that says who they are (reference 3.32). */
export class ProxyHeaderReader implements TransportHandler, LiveConnection {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly #transport: Transport;
  readonly #host: ProxyHeaderHost;
  readonly #settings: ProxyProtocol;
  readonly #held = new ByteQueue();
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout;
  #closed = false;

  constructor(transport: Transport, settings: ProxyProtocol, host: ProxyHeaderHost, timeoutMs = HEADER_TIMEOUT_MS) {
    this.#transport = transport;
    this.#settings = settings;
    this.#host = host;
    this.remoteAddress = transport.remoteAddress;
    this.remotePort = transport.remotePort;
    this.#timer = setTimeout(() => this.#expire(), timeoutMs);
  }

  get activity(): LiveConnection["activity"] {
    return { state: "proxy header", ageMs: performance.now() - this.#startedAt };
  }

  abort(reason: string): void {
    if (this.#end()) this.#host.onProxyFailure(this, reason);
    this.#transport.destroy();
  }

  onData(buffer: Buffer, length: number): void {
    if (this.#closed) return;
    const held = this.#held;
    held.append(buffer, 0, length);
    const bytes = held.bytes.subarray(held.start, held.end);
    const header = parseProxyHeader(bytes, this.#settings.version);
    switch (header.state) {
      case "more":
        return;
      case "invalid":
        this.abort(header.detail);
        return;
      case "absent":
        if (this.#settings.mode === "strict") this.abort(`the connection does not begin with ${this.#expected}`);
        else this.#pass(bytes);
        return;
      case "complete":
        if (header.addresses !== undefined) this.#transport.setAddresses(header.addresses);
        this.#pass(bytes.subarray(header.length));
    }
  }

  onEnd(): void {
    this.abort(`the connection closed before ${this.#expected}`);
  }

  /** Nothing is written before the header. */
  onDrain(): void {}

  onClose(error: Error | undefined): void {
    if (this.#end())
      this.#host.onProxyFailure(this, error?.message ?? `the connection closed before ${this.#expected}`);
  }

  onFault(error: unknown): void {
    this.#host.onFault(error);
  }

  get #expected(): string {
    const { version } = this.#settings;
    return version === "all" ? "a PROXY header" : `a PROXY header of version ${version.slice(1)}`;
  }

  /** A client that says nothing yet has no header when it need not have one: it may wait for the server to speak. */
  #expire(): void {
    if (this.#settings.mode === "optional" && this.#held.length === 0) this.#pass(NOTHING);
    else this.abort(`${this.#expected} did not arrive in time`);
  }

  #pass(rest: Buffer): void {
    if (this.#end()) this.#host.onProxyHeader(this, this.#transport, rest);
  }

  /** False when it was over before. */
  #end(): boolean {
    if (this.#closed) return false;
    this.#closed = true;
    clearTimeout(this.#timer);
    return true;
  }
}
