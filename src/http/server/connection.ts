/**
 * One client connection that speaks HTTP/1.1 (RFC 9112): reads one request at a time, holds what is pipelined behind it, writes the
 * responses in order, and ends the connection so that no message can be mistaken for a complete one. Bytes come from the transport,
 * requests go to the acceptor, responses come from the stream that it made. serve-http.ts makes one for each connection.
 *
 * The cost of a client is bounded: requests take turns with other connections; bytes that cannot be used yet are held up to a limit,
 * beyond which reading stops; it also stops for a client that does not read its responses; and every wait has a deadline.
 */
import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import { ByteQueue } from "../../net/byte-queue.ts";
import { latin1Slice } from "../../net/node-internals.ts";
import type { Transport } from "../../net/transport.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "../message/message.ts";
import { Deadline, LEAVE_IDLE_MS, LINGER_BYTES, LINGER_MS, queueLimit, Turns, type TurnTaker } from "../pace.ts";
import {
  type Downstream,
  type HttpConnection,
  type HttpHost,
  type NetworkMetadata,
  type ServerStream,
  type StreamAcceptor,
  TUNNEL,
} from "../stream.ts";
import { BodyReader } from "./body-reader.ts";
import { ClientPeer } from "./client-peer.ts";
import { HeadReader } from "./head-reader.ts";
import { ResponseWriter } from "./response-writer.ts";

/** Makes the connection that takes over when a client begins HTTP/2 instead of sending a first request (RFC 9113 3.3). */
type Successor = (
  transport: Transport,
  host: HttpHost,
  streams: StreamAcceptor,
  metadata: NetworkMetadata | undefined,
) => HttpConnection;

/** The start of HTTP/2's preface, which looks like a head of HTTP/1.1 (RFC 9113 3.4). */
const HTTP2_START = "PRI * HTTP/2.0\r\n\r\n";
/** Three words and nothing else, and the last is not a protocol with a version: a wrong HTTP/2 preface. */
const WRONG_PREFACE = /^[!-~]+ [!-~]+ [!-.0-~]+\r\n\r\n/;

/**
 * head: between requests or inside a head; body: reading one; wait: request read, response not ended; tunnel: bytes both
 * ways; linger: all is written, what the client still sends is discarded (RFC 9112 9.6).
 */
type ReadState = "head" | "body" | "wait" | "tunnel" | "linger" | "closed";

export class ServerConnection extends ClientPeer implements HttpConnection, Downstream, TurnTaker {
  /** One request at a time: its stream is the connection. */
  readonly connection = this;
  readonly #transport: Transport;
  readonly #host: HttpHost;
  readonly #streams: StreamAcceptor;
  readonly #heads = new HeadReader();
  readonly #body = new BodyReader();
  readonly #writer: ResponseWriter;
  /** Until the first request. */
  #successor: Successor | undefined;
  readonly #deadline = new Deadline();
  readonly #turns = new Turns(this);
  /** Bytes not used yet; the start of a head while the state is `head`. */
  readonly #held = new ByteQueue();
  #stream: ServerStream | undefined;
  #state: ReadState = "head";
  /** `#process` is running, and continues to read by itself. */
  #processing = false;
  /** Body bytes were handed over; the stream may have gathered them until `onBodyBatch`. */
  #batchOpen = false;
  #requestDone = true;
  #responseDone = true;
  /** The connection may carry another request after this one (RFC 9112 9.3). */
  #keepAlive = true;
  /** The client has closed its sending side while requests that it had sent before were still waiting. */
  #endWaits = false;
  #lingerLeft = 0;
  #leaving = false;
  requestLength = 0;

  /**
   * `metadata`: what the network authorization has returned about the connection. `successor`: where clients may begin HTTP/2
   * without TLS.
   */
  constructor(
    transport: Transport,
    host: HttpHost,
    streams: StreamAcceptor,
    metadata?: NetworkMetadata,
    successor?: Successor,
  ) {
    super(transport, metadata);
    this.#transport = transport;
    this.#host = host;
    this.#streams = streams;
    this.#successor = successor;
    this.#writer = new ResponseWriter(transport);
    this.#deadline.after(host.frontend.idleTimeout);
  }

  get activity(): { readonly state: string; readonly ageMs: number; readonly exchange?: object } {
    const stream = this.#stream;
    return {
      state: this.#idle() ? "idle" : this.#state,
      ageMs: this.#deadline.ageMs,
      ...(stream !== undefined && { exchange: stream.activity }),
    };
  }

  get bodyBytes(): number {
    return this.#body.received;
  }

  get rawNames(): readonly string[] | null {
    return this.#heads.head.rawNames;
  }

  get upgrade(): string {
    return this.#heads.head.upgrade;
  }

  get trailersAccepted(): boolean {
    return this.#heads.head.trailersAccepted;
  }

  get traceToken(): string {
    return this.#heads.head.traceToken;
  }

  get loop(): string {
    return this.#heads.head.loop;
  }

  get hasForwarded(): boolean {
    return this.#heads.head.hasForwarded;
  }

  get hasUnderscore(): boolean {
    return this.#heads.head.hasUnderscore;
  }

  /** No request is under way and none has begun to arrive. */
  #idle(): boolean {
    return this.#state === "head" && this.#held.length === 0;
  }

  /** The client does not read its responses. */
  #overfull(): boolean {
    return this.#transport.backlog >= queueLimit();
  }

  /** Requests that have arrived are not read for now. */
  #mustWait(): boolean {
    return this.#turns.waiting || this.#overfull();
  }

  // ── from the transport ──

  onData(buffer: Buffer, length: number): void {
    const held = this.#held;
    if (held.length > 0) {
      held.append(buffer, 0, length);
      this.#processHeld();
    } else {
      const used = this.#process(buffer, 0, length);
      if (used < length) held.append(buffer, used, length);
    }
    this.#paceReading();
  }

  /** A client that has only closed its sending side looks like one that has left, and is treated the same way. */
  onEnd(): void {
    if (this.#state === "tunnel") {
      this.#requestDone = true;
      this.#stream?.onBodyEnd([]);
    } else if (this.#mustWait() && this.#state === "head") {
      this.#endWaits = true;
    } else if (this.#state === "head") {
      if (this.#held.length > 0) this.#reject("TG_INVALID_REQUEST", "the connection ended inside the request head");
      else this.closeIfIdle();
    } else if (this.#state !== "linger") this.#gone();
  }

  onDrain(): void {
    this.#deadline.progress();
    if (this.#stream !== undefined) this.#stream.onClientDrain();
    else if (this.#state === "head") this.#resume();
  }

  onClose(): void {
    this.#gone();
    this.#host.onConnectionClose(this);
  }

  onFault(error: unknown): void {
    this.#host.onFault(error);
    this.#gone("TG_INTERNAL");
  }

  /** In the turn after one in which the client has begun too many requests. */
  onTurn(): void {
    if (this.#state === "head") this.#resume();
  }

  // ── from the stream ──

  readBody(): void {
    this.#body.start();
    if (this.#state !== "body" && this.#state !== "tunnel") return;
    this.#deadline.progress();
    this.#batchOpen = true;
    this.#resume();
  }

  pauseBody(): void {
    this.#body.pause();
    this.#transport.pause();
  }

  resumeBody(): void {
    if (!this.#body.paused) return;
    this.#body.resume();
    // After the last byte, the upstream may take its time to respond.
    if (!this.#requestDone) this.#deadline.progress();
    this.#resume();
  }

  awaitResponseBody(): void {
    this.#deadline.progress();
  }

  /** Not to clients of HTTP/1.0, which do not know 1xx (RFC 9110 15.2). */
  sendInformational(status: number, headers: HeaderList): void {
    if (this.#state === "closed" || this.#heads.head.minor === 0) return;
    if (status === 100) this.#heads.head.expectContinue = false;
    this.#writer.informational(status, headers);
  }

  sendHead(response: HttpResponse, length: number, rawNames: readonly string[] | null): void {
    if (this.#state === "closed") return;
    this.#deadline.progress();
    if (length === TUNNEL) {
      this.#state = "tunnel";
      this.#requestDone = false;
    } else if (this.#host.draining || this.#leaving || this.#heads.head.method === "CONNECT") {
      // After a rejected CONNECT, what follows may be meant for the tunnel and must not be read as requests.
      this.#keepAlive = false;
    }
    // An unread body would be mistaken for the next request. A small one is read and dropped, unless its client still waits for 100
    // and may never send it (RFC 9110 10.1.1).
    const discardable = this.#state === "body" && !this.#heads.head.expectContinue && this.#body.discardable;
    const keepAlive = this.#keepAlive && (this.#requestDone || discardable);
    this.#keepAlive = this.#writer.head(response, length, rawNames, this.#heads.head, keepAlive);
  }

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    if (this.#state === "closed") return true;
    this.#deadline.progress();
    return this.#writer.body(buffer, from, to);
  }

  sendEnd(trailers: HeaderList): void {
    if (this.#state === "closed") return;
    const complete = this.#writer.end(trailers);
    this.#responseDone = true;
    if (!complete) this.#breakOff();
    else if (this.#state === "tunnel" && !this.#requestDone) {
      this.#writer.flush();
      this.#transport.end();
    } else if (!this.#keepAlive) this.#finish();
    else this.#next();
  }

  flush(): boolean {
    return this.#state === "closed" || this.#writer.flush();
  }

  endTunnel(): void {
    if (this.#state !== "closed") this.#finish();
  }

  abort(): void {
    if (this.#state === "closed") return;
    this.#stream = undefined;
    this.#breakOff();
  }

  // ── reading ──

  /** Consumes as much of `buffer[from, to)` as possible now; returns where it stopped. */
  #process(buffer: Buffer, from: number, to: number): number {
    let at = from;
    this.#processing = true;
    while (at < to) {
      const before = at;
      const state = this.#state;
      if (state === "head") {
        if (this.#overfull()) {
          // No write may have asked to wait: many small ones add up, and the limit may have been lowered since.
          this.#transport.awaitDrain();
          break;
        }
        if (!this.#turns.begin()) break;
        at = this.#readHead(buffer, at, to);
      } else if (state === "body" && this.#body.open && !this.#body.paused) at = this.#readBodyBytes(buffer, at, to);
      else if (state === "tunnel" && this.#body.open) at = this.#readTunnel(buffer, at, to);
      else if (state === "linger") at = this.#discard(at, to);
      else if (state === "closed") at = to;
      else break;
      if (at === before && this.#state === state) break;
    }
    if (at === to) this.#turns.reset();
    this.#processing = false;
    this.#endBatch();
    return at;
  }

  #processHeld(): void {
    const held = this.#held;
    const used = this.#process(held.bytes, held.start, held.end);
    // Empty if processing has ended the connection.
    if (held.length > 0) held.consume(used);
  }

  /** Continues to read, held bytes first, unless `#process` is running and does so itself. */
  #resume(): void {
    if (this.#processing) return;
    if (this.#held.length > 0) this.#processHeld();
    else this.#endBatch();
    this.#paceReading();
    if (this.#endWaits && !this.#mustWait()) this.onEnd();
  }

  /** Keeps reading unless the body is paused or too many bytes are held that cannot be used yet. */
  #paceReading(): void {
    const state = this.#state;
    if (state === "linger" || state === "closed") return;
    if (this.#held.length >= queueLimit() && (state !== "head" || this.#mustWait())) this.#transport.pause();
    else if (!this.#body.paused || state === "head" || state === "wait") this.#transport.resume();
  }

  #endBatch(): void {
    if (!this.#batchOpen) return;
    this.#batchOpen = false;
    this.#stream?.onBodyBatch();
  }

  #readHead(buffer: Buffer, start: number, end: number): number {
    const heads = this.#heads;
    const { begun } = heads;
    const request = heads.read(buffer, start, end, this.#host.frontend, this.protocol);
    if (request !== undefined) {
      this.#begin(request);
      return heads.end;
    }
    const { error } = heads;
    if (error === undefined) {
      // Counted from its first byte: a head that trickles in ("slowloris") must not occupy the connection.
      if (!begun) this.#deadline.after(this.#host.frontend.headerReadTimeout);
      return start;
    }
    const received = buffer.subarray(start, end);
    const successor = this.#successor;
    const text = latin1Slice(received, 0, received.length);
    if (successor !== undefined && text.startsWith(HTTP2_START)) this.#handOver(received, successor);
    else if (successor !== undefined && WRONG_PREFACE.test(text)) {
      // The client's frame parser would take an HTTP/1.1 response for a frame (RFC 9113 3.4).
      this.#destroy();
      this.#streams.rejected(this, error.code, error.detail, received);
    } else this.#reject(error.code, error.detail, received);
    return end;
  }

  /** The client speaks HTTP/2: another connection takes over the transport and the bytes received, and replaces this one. */
  #handOver(received: Buffer, successor: Successor): void {
    const connection = successor(this.#transport, this.#host, this.#streams, this.metadata);
    this.#state = "closed";
    this.#host.onVersionChange(this, connection);
    this.#transport.passTo(connection, received);
  }

  #begin(request: HttpRequest): void {
    const { head } = this.#heads;
    this.#successor = undefined;
    this.#keepAlive = head.keepAlive;
    this.#deadline.suspend();
    this.#responseDone = false;
    this.requestLength = this.#body.begin(head);
    this.#requestDone = this.requestLength === 0;
    this.#state = this.#requestDone ? "wait" : "body";
    const stream = this.#streams.open(this, request);
    this.#stream = stream;
    stream.start();
  }

  #readBodyBytes(buffer: Buffer, at: number, end: number): number {
    this.#heads.head.expectContinue = false;
    this.#deadline.progress();
    this.#batchOpen = true;
    const body = this.#body;
    const used = body.read(buffer, at, end, this);
    // The stream may have ended the connection, or this side when the body became too large.
    if (this.#state !== "body") return end;
    if (used === -1) {
      this.#reject("TG_INVALID_REQUEST", body.error);
      return end;
    }
    if (body.done) this.#endBody(body.trailers);
    return used;
  }

  /** Receives body bytes without framing from the body reader. */
  onBody(buffer: Buffer, from: number, to: number): void {
    const limit = this.#host.frontend.maxRequestBodySize;
    this.#body.received += to - from;
    if (limit === 0 || this.#body.received <= limit) this.#stream?.onBody(buffer, from, to);
    else if (this.#state === "body") this.#reject("TG_BODY_TOO_LARGE", `more than ${limit} bytes`);
  }

  #readTunnel(buffer: Buffer, at: number, end: number): number {
    this.#deadline.progress();
    this.#batchOpen = true;
    this.#body.received += end - at;
    this.#stream?.onBody(buffer, at, end);
    return end;
  }

  #endBody(trailers: HeaderList): void {
    if (this.#state !== "body") return;
    this.#requestDone = true;
    this.#batchOpen = false;
    this.#state = "wait";
    // From here on the upstream has to make progress, and its timeouts apply.
    if (!this.#writer.started) this.#deadline.suspend();
    this.#stream?.onBodyEnd(trailers);
    if (this.#responseDone && this.#keepAlive) this.#next();
  }

  /** The response is written: the next request may be waiting already. */
  #next(): void {
    if (this.#state === "closed") return;
    this.#stream = undefined;
    if (!this.#requestDone) {
      // The upstream that a paused body waited for is gone.
      if (this.#body.paused) this.#body.resume();
      this.readBody();
      return;
    }
    this.#state = "head";
    if (this.#host.closesIdle && !this.#processing) this.closeIfIdle();
    if (this.#state !== "head") return;
    this.#deadline.restart();
    this.#resume();
  }

  // ── deadlines ──

  sweep(now: number): void {
    const { frontend, closesIdle } = this.#host;
    const state = this.#state;
    if (state === "head" && this.#stream === undefined) this.#heads.forget();
    // A lingering client may take the response as long as it makes progress, and then has LINGER_MS to stop sending.
    if (state !== "linger")
      this.#deadline.renew(now, state === "head" ? this.#idleTimeout() : frontend.streamIdleTimeout, state === "head");
    else if (this.#transport.backlog === 0) this.#deadline.renew(now, LINGER_MS, false);
    if (state === "body" && this.#body.tooSlow(now, frontend.minBodyRate)) {
      this.#reject("TG_CLIENT_TIMEOUT", "the request body arrives too slowly");
      return;
    }
    if (state === "body" || state === "wait") {
      // A client whose bytes are not read may leave unnoticed: a reset is only seen here, and a close only after the bytes sent
      // before it, so up to the limit of a paused body is read ahead (decision 1, peers that close).
      const full = this.#held.length >= queueLimit();
      if (this.#body.paused && !full) this.#transport.resume();
      if ((this.#body.paused || full) && this.#transport.wasReset) {
        this.#gone();
        return;
      }
    } else if ((state === "linger" || this.#endWaits) && this.#transport.backlog > 0 && this.#transport.wasReset) {
      // TLS of Node.js loses what is written after its own writes have failed, without an event.
      this.#gone();
      return;
    }
    const tooOld = this.#deadline.olderThan(now, frontend.maxConnectionDuration);
    if (tooOld) this.#keepAlive = false;
    if ((tooOld || closesIdle) && this.#idle()) this.closeIfIdle();
    else if (this.#deadline.passed(now)) this.#expire();
  }

  #expire(): void {
    if (this.#idle()) this.closeIfIdle();
    else if (this.#state === "linger") this.#destroy();
    else if (this.#state === "head") this.#reject("TG_CLIENT_TIMEOUT", "the request head did not arrive in time");
    else if (this.#body.paused) this.#reject("TG_UPSTREAM_TIMEOUT", "the upstream took no more of the request body");
    else if (this.#state === "body") this.#reject("TG_CLIENT_TIMEOUT", "the request body stopped arriving");
    else if (this.#writer.started) this.#reject("TG_CLIENT_TIMEOUT", "no progress for too long");
    else this.#reject("TG_UPSTREAM_TIMEOUT", "the response body stopped arriving");
  }

  // ── ending ──

  /** The client may still be reading the last response, which is not cut off. */
  closeIfIdle(): void {
    if (!this.#idle()) return;
    this.#writer.flush();
    if (this.#transport.backlog > 0) this.#finish();
    else this.#destroy();
  }

  /** Does not close at once: a request may be on its way, and its client could not know whether it was served. */
  askToReconnect(): void {
    this.#leaving = true;
    if (this.#idle()) this.#deadline.after(this.#idleTimeout());
  }

  #idleTimeout(): number {
    const { idleTimeout } = this.#host.frontend;
    return this.#leaving ? Math.min(idleTimeout, LEAVE_IDLE_MS) : idleTimeout;
  }

  terminate(reason: string): void {
    const stream = this.#stream;
    this.abort();
    stream?.onClientGone("TG_SHUT_DOWN", `${reason} before the request was complete`);
  }

  /**
   * Responds to a request that cannot be read, then closes: the boundaries of what follows on the connection are unknown. `head`: what
   * has arrived of its head, if that is not held.
   */
  #reject(code: ErrorCode, detail: string, head?: Buffer): void {
    if (this.#state === "body" && this.#stream === undefined) {
      // The rest of a body whose request has its response: the client would mistake a second one for that to its next request.
      this.#finish();
      return;
    }
    const { message } = ERRORS[code];
    const received = this.#state === "head" ? (head ?? this.#held.view()) : undefined;
    const stream = this.#stream;
    this.#stream = undefined;
    if (this.#writer.started) this.#breakOff();
    else {
      this.#writer.error(code);
      this.#finish();
    }
    if (stream !== undefined) stream.onClientGone(code, `${message}: ${detail}`);
    else this.#streams.rejected(this, code, detail, received);
  }

  /**
   * Everything is written. Sends FIN and keeps reading for a while: a close with unread bytes of the client would become a reset,
   * which can destroy the response before the client has read it (RFC 9112 9.6).
   */
  #finish(): void {
    this.#stream = undefined;
    this.#held.clear();
    this.#writer.flush();
    this.#state = "linger";
    this.#lingerLeft = LINGER_BYTES;
    this.#deadline.after(this.#host.frontend.streamIdleTimeout);
    this.#deadline.progress();
    this.#transport.end();
    this.#transport.resume();
  }

  /** Stops reading when there is too much, instead of closing: a close would reset the connection. */
  #discard(at: number, end: number): number {
    this.#lingerLeft -= end - at;
    if (this.#lingerLeft < 0 && this.#transport.backlog === 0) this.#transport.pause();
    return end;
  }

  /** The client is gone, or has to be treated as gone. */
  #gone(code: ErrorCode = "TG_CLIENT_GONE"): void {
    if (this.#state === "closed") return;
    const stream = this.#stream;
    this.#stream = undefined;
    // Earlier responses leave first: the client may have closed only its sending side.
    if (!this.#writer.started) this.#writer.flush();
    this.#destroy();
    stream?.onClientGone(code, ERRORS[code].message);
  }

  /** Aborts a response. If only the close delimits it, the connection is reset, so the client does not mistake it for a complete one. */
  #breakOff(): void {
    if (this.#writer.endsByClose) this.#transport.reset();
    else this.#writer.flush();
    this.#destroy();
  }

  #destroy(): void {
    this.#state = "closed";
    this.#held.clear();
    this.#transport.destroy();
  }
}
