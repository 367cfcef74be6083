import { ByteQueue } from "../../net/byte-queue.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import { MAX_CLIENT_HELLO, parseClientHello } from "../../tls/tls-client-hello.ts";
import type { TlsTerminator } from "../../tls/tls-terminator.ts";
import type { CompiledListener } from "../compiled.ts";
import type { LiveConnection } from "./live-connection.ts";

/** Milliseconds, unless the configuration says otherwise. */
const HANDSHAKE_TIMEOUT_MS = 15_000;

/** The bind of a handshake. */
export interface HandshakeHost {
  /** By the configuration in force now. `serverName` is `` when the client names none. */
  findListener(serverName: string): CompiledListener | undefined;
  /** TLS has ended here. Returns the handler of the bytes inside. */
  onSecured(
    handshake: TlsHandshake,
    transport: Transport,
    listener: CompiledListener,
    seconds: number,
  ): TransportHandler;
  /** The listener lets TLS pass. Returns the handler of the connection, which gets the ClientHello next. */
  onPassthrough(
    handshake: TlsHandshake,
    transport: Transport,
    listener: CompiledListener,
    serverName: string,
  ): TransportHandler;
  /** The connection is closed or about to be. */
  onHandshakeFailure(handshake: TlsHandshake, message: string): void;
  onFault(error: unknown): void;
}

/**
 * A new connection of a TLS bind: reads the ClientHello, finds the listener by the name in it, then ends TLS or lets it
 * pass. Nothing is answered before a listener is found.
 */
export class TlsHandshake implements TransportHandler, LiveConnection {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly #transport: Transport;
  readonly #host: HandshakeHost;
  readonly #hello = new ByteQueue();
  readonly #startedAt = performance.now();
  readonly #timer: NodeJS.Timeout;
  #closed = false;

  constructor(transport: Transport, host: HandshakeHost, timeoutMs = HANDSHAKE_TIMEOUT_MS) {
    this.#transport = transport;
    this.#host = host;
    this.remoteAddress = transport.remoteAddress;
    this.remotePort = transport.remotePort;
    this.#timer = setTimeout(() => this.abort("the TLS handshake took too long"), timeoutMs);
  }

  get activity(): LiveConnection["activity"] {
    return { state: "handshake", ageMs: performance.now() - this.#startedAt };
  }

  abort(reason: string): void {
    if (this.#end()) this.#host.onHandshakeFailure(this, reason);
    this.#transport.destroy();
  }

  onData(buffer: Buffer, length: number): void {
    if (this.#closed) return;
    this.#hello.append(buffer, 0, length);
    const hello = this.#hello.bytes.subarray(this.#hello.start, this.#hello.end);
    const parsed = parseClientHello(hello);
    if (parsed.state === "invalid") this.abort(parsed.detail);
    else if (parsed.state === "complete") this.#route(parsed.serverName, hello);
    else if (hello.length > MAX_CLIENT_HELLO) this.abort("the ClientHello is too large");
  }

  onEnd(): void {
    this.abort("the connection closed during the handshake");
  }

  /** Nothing is written before a listener is found. */
  onDrain(): void {}

  onClose(error: Error | undefined): void {
    if (this.#end())
      this.#host.onHandshakeFailure(this, error?.message ?? "the connection closed during the handshake");
  }

  onFault(error: unknown): void {
    this.#host.onFault(error);
  }

  #route(serverName: string, hello: Buffer): void {
    const listener = this.#host.findListener(serverName);
    if (listener === undefined) {
      this.abort(`no TLS listener match for ${serverName === "" ? "a client that names no server" : serverName}`);
    } else if (listener.terminator !== undefined) {
      this.#terminate(listener, listener.terminator, serverName, hello);
    } else {
      this.#end();
      this.#hello.clear();
      this.#transport.passTo(this.#host.onPassthrough(this, this.#transport, listener, serverName), hello);
    }
  }

  #terminate(listener: CompiledListener, terminator: TlsTerminator, serverName: string, hello: Buffer): void {
    terminator.accept(this.#transport, hello, serverName, {
      onSecure: (transport) => {
        this.#end();
        return this.#host.onSecured(this, transport, listener, (performance.now() - this.#startedAt) / 1000);
      },
      onHandshakeFailure: (message) => {
        if (this.#end()) this.#host.onHandshakeFailure(this, `TLS handshake failed: ${message}`);
      },
    });
  }

  /** False when it was over before. */
  #end(): boolean {
    if (this.#closed) return false;
    this.#closed = true;
    clearTimeout(this.#timer);
    return true;
  }
}
