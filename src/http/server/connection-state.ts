import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import type { Sweepable } from "../../base/sweeper.ts";
import { Peer } from "../../net/addresses.ts";
import { ByteQueue } from "../../net/byte-queue.ts";
import type { TlsSession, Transport } from "../../net/transport.ts";
import type { MadeFields } from "../h1/serialize.ts";
import type { HeaderList } from "../message.ts";
import type { ClientConnection, NetworkMetadata, ServerStream, StreamAcceptor } from "../stream.ts";
import { BodyReader } from "./body-reader.ts";
import type { ConnectionLimits } from "./limits.ts";
import { ResponseWriter } from "./response-writer.ts";

/** A client that pipelines without reading the answers is not read either once so much of them waits. */
const BACKLOG_LIMIT = 64 * 1024;
/** Pipelined or early bytes that are held while they cannot be used; more stop the reading. */
export const HELD_LIMIT = 64 * 1024;
/** After the last response: how long and how much of what the client still sends is thrown away before the close. */
const LINGER_MS = 2000;
const LINGER_BYTES = 1024 * 1024;
const NO_HEADERS: HeaderList = [];

/**
 * head: between requests or inside a head; body: reading one; wait: request read, response not ended; linger: all is
 * written, what the client still sends is thrown away.
 */
export type ReadState = "head" | "body" | "wait" | "tunnel" | "linger" | "closed";

/** What all connections of a bind share. */
export interface ConnectionSettings {
  /** Limits in force; read for each request, so a reload reaches open connections. */
  readonly frontend: ConnectionLimits;
  readonly acceptor: StreamAcceptor;
  /** Responses ask clients to close their connections. */
  readonly draining: boolean;
  /** Connections without a request are closed. */
  readonly closesIdle: boolean;
}

/** What a connection of a client holds, how long it waits, and how it ends; connection.ts adds what it reads and writes. */
export abstract class ConnectionState extends Peer implements ClientConnection, Sweepable {
  protected readonly transport: Transport;
  protected readonly host: ConnectionSettings;
  protected readonly writer: ResponseWriter;
  protected readonly body = new BodyReader();
  protected stream: ServerStream | undefined;
  protected state: ReadState = "head";
  /** Bytes not used yet; the start of a head while the state is `head`. */
  protected readonly held = new ByteQueue();
  protected requestDone = true;
  protected keepAlive = true;
  madeFields: MadeFields | undefined;
  readonly metadata: NetworkMetadata | undefined = undefined;
  #lingerLeft = 0;
  /** When what the connection waits for now is given up; `performance.now()` ms, 0 = never. */
  protected deadline: number;
  /** A body has moved since the last sweep, in either direction, or a response has ended. */
  protected progressed = false;
  readonly #created = performance.now();

  readonly protocol: "http" | "https";
  readonly tls: TlsSession | undefined;

  constructor(transport: Transport, host: ConnectionSettings) {
    super(transport);
    this.transport = transport;
    this.host = host;
    this.writer = new ResponseWriter(transport);
    this.protocol = transport.tls === undefined ? "http" : "https";
    this.tls = transport.tls;
    this.deadline = this.#created + host.frontend.idleTimeout;
  }

  get bytesReceived(): number {
    return this.transport.bytesRead;
  }

  get bodyBytes(): number {
    return this.body.received;
  }

  get bytesSent(): number {
    return this.transport.bytesWritten;
  }

  /** What the connection is doing, for the task dump. */
  get activity(): { readonly state: string; readonly ageMs: number } {
    return { state: this.idle ? "idle" : this.state, ageMs: performance.now() - this.#created };
  }

  protected get idle(): boolean {
    return this.state === "head" && this.held.length === 0;
  }

  /** The next sweep sets the deadline: reading the clock for each request would cost more. */
  protected startIdling(): void {
    this.deadline = 0;
    this.progressed = true;
  }

  protected get overfull(): boolean {
    return this.transport.backlog >= BACKLOG_LIMIT;
  }

  sweep(now: number): void {
    const { frontend, closesIdle } = this.host;
    if (this.state === "linger") {
      // The client gets as long as it makes progress to take the response, and a little more to stop sending.
      if (this.progressed && this.transport.backlog === 0) {
        this.progressed = false;
        this.deadline = now + LINGER_MS;
      }
    } else if (this.progressed) {
      this.progressed = false;
      if (this.state !== "head") this.deadline = now + frontend.streamIdleTimeout;
      else if (this.deadline === 0) this.deadline = now + frontend.idleTimeout;
    }
    if (this.state === "body" && this.body.tooSlow(now, frontend.minBodyRate)) {
      this.refuse("TG_CLIENT_TIMEOUT", "the request body arrives too slowly");
      return;
    }
    if (this.body.paused && this.#clientResetWhilePaused()) {
      this.gone();
      return;
    }
    const tooOld = frontend.maxConnectionDuration > 0 && now - this.#created > frontend.maxConnectionDuration;
    if (tooOld) this.keepAlive = false;
    if ((tooOld || closesIdle) && this.idle) this.closeIdle();
    else if (this.deadline !== 0 && now >= this.deadline) this.#expire();
  }

  /**
   * Whether a client that is not read, because its upstream takes no more of the body, has reset the connection. That it has
   * closed is seen only behind the bytes it has sent, so up to HELD_LIMIT of them are read ahead.
   */
  #clientResetWhilePaused(): boolean {
    if (this.state !== "body") return false;
    if (this.held.length < HELD_LIMIT) this.transport.resume();
    return this.transport.wasReset;
  }

  /** Closes at once when idle; else the response under way says `connection: close`. */
  drain(): void {
    if (this.idle) this.closeIdle();
  }

  // ── ending ──

  /**
   * Answers a request that cannot be read, then closes: what follows on the connection has no known boundaries. `head`: what
   * has arrived of its head, when that is not held.
   */
  protected refuse(code: ErrorCode, detail: string, head?: Buffer): void {
    const { status, message } = ERRORS[code];
    const { bytes, start, end } = this.held;
    const received = this.state === "head" ? (head ?? bytes.subarray(start, end)) : undefined;
    const stream = this.stream;
    this.stream = undefined;
    if (this.writer.started) this.breakOff();
    else {
      // The detail is for the log: bodies come from the table.
      const body = Buffer.from(message);
      const headers = ["content-type", "text/plain", "content-length", String(body.length)];
      const context = { method: "GET", minor: 1, trailersAccepted: false } as const;
      this.writer.head({ status, headers }, body.length, null, context, false);
      this.writer.body(body, 0, body.length);
      this.writer.end(NO_HEADERS);
      this.finish();
    }
    if (stream !== undefined) stream.onClientGone(code, `${message}: ${detail}`);
    else this.host.acceptor.refused(this, code, detail, received);
  }

  #expire(): void {
    if (this.idle) this.closeIdle();
    else if (this.state === "linger") this.destroy();
    else if (this.state === "head") this.refuse("TG_CLIENT_TIMEOUT", "the request head did not arrive in time");
    else if (this.body.paused) this.refuse("TG_UPSTREAM_TIMEOUT", "the request body was not taken");
    else if (this.state === "body") this.refuse("TG_CLIENT_TIMEOUT", "the request body stopped arriving");
    else this.refuse("TG_CLIENT_TIMEOUT", "nothing moved for too long");
  }

  /** Closes a connection without a request. The client may still be taking the last response. */
  protected closeIdle(): void {
    if (this.transport.backlog > 0) this.finish();
    else this.destroy();
  }

  /** All is written; closes without losing it: unread bytes of the client would turn the close into a reset. */
  protected finish(): void {
    this.stream = undefined;
    this.held.clear();
    this.state = "linger";
    this.#lingerLeft = LINGER_BYTES;
    this.progressed = true;
    this.deadline = performance.now() + this.host.frontend.streamIdleTimeout;
    this.transport.end();
    this.transport.resume();
  }

  protected discard(bytes: number, end: number): number {
    this.#lingerLeft -= bytes;
    // A close would reset the connection, and a client that has not read the answer by then would lose it.
    if (this.#lingerLeft < 0 && this.transport.backlog === 0) this.transport.pause();
    return end;
  }

  protected gone(): void {
    if (this.state === "closed") return;
    const stream = this.stream;
    this.stream = undefined;
    this.destroy();
    stream?.onClientGone("TG_CLIENT_GONE", ERRORS.TG_CLIENT_GONE.message);
  }

  protected breakOff(): void {
    if (this.writer.endsByClose) this.transport.reset();
    else this.writer.flush();
    this.destroy();
  }

  protected destroy(): void {
    this.state = "closed";
    this.held.clear();
    this.transport.destroy();
  }
}
