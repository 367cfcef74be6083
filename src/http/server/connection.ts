import type { Transport, TransportHandler } from "../../net/transport.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "../message.ts";
import { type Downstream, TUNNEL } from "../stream.ts";
import { type ConnectionSettings, ConnectionState, HELD_LIMIT, type ReadState } from "./connection-state.ts";
import { HeadReader } from "./head-reader.ts";
import { Turns } from "./turns.ts";

const NO_HEADERS: HeaderList = [];

/** The bind of a connection. */
export interface ConnectionHost extends ConnectionSettings {
  onConnectionClose(connection: ServerConnection): void;
  /** A defect of the gateway has ended the connection. */
  onFault(error: unknown): void;
}

/**
 * One client connection that speaks HTTP/1.1 (RFC 9112): reads a request at a time, holds what is pipelined behind it, and
 * writes the answers in order.
 */
export class ServerConnection extends ConnectionState implements TransportHandler, Downstream {
  readonly #owner: ConnectionHost;
  readonly #heads = new HeadReader();
  #processing = false;
  /** Body bytes were handed over that the stream may have gathered. */
  #batchOpen = false;
  #responseDone = true;
  /** The client may be waiting for 100 before it sends the body. */
  #expectsContinue = false;
  #method = "";
  readonly #turns = new Turns(() => this.#onTurn());
  /** The client has closed its sending side while requests that it had sent before were still waiting. */
  #endWaits = false;
  requestLength = 0;
  /** One request at a time: its stream is the connection. */
  readonly connection = this;

  constructor(transport: Transport, host: ConnectionHost) {
    super(transport, host);
    this.#owner = host;
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

  get hasForwarded(): boolean {
    return this.#heads.head.hasForwarded;
  }

  get hasUnderscore(): boolean {
    return this.#heads.head.hasUnderscore;
  }

  /** Requests that have arrived are not read for now. */
  get #mustWait(): boolean {
    return this.#turns.waiting || this.overfull;
  }

  get #canDiscardBody(): boolean {
    return this.state === "body" && !this.#expectsContinue && this.body.discardable;
  }

  // ── from the transport ──

  onData(buffer: Buffer, length: number): void {
    const held = this.held;
    if (held.length > 0) {
      held.append(buffer, 0, length);
      this.#processHeld();
    } else {
      const used = this.#process(buffer, 0, length);
      if (used < length) held.append(buffer, used, length);
    }
    this.#paceReading();
  }

  /** A client that only closes its sending side cannot be told from one that is gone, and is taken for gone. */
  onEnd(): void {
    if (this.state === "tunnel") {
      this.requestDone = true;
      this.stream?.onBodyEnd(NO_HEADERS);
    } else if (this.#mustWait && this.state === "head") {
      this.#endWaits = true;
    } else if (this.state === "head") {
      if (this.held.length > 0) this.refuse("TG_INVALID_REQUEST", "the connection ended inside the request head");
      else this.closeIdle();
    } else if (this.state !== "linger") this.gone();
  }

  onDrain(): void {
    this.progressed = true;
    if (this.stream !== undefined) this.stream.onClientDrain();
    else if (this.state === "head") this.#resume();
  }

  onClose(): void {
    this.gone();
    this.#owner.onConnectionClose(this);
  }

  onFault(error: unknown): void {
    this.#owner.onFault(error);
    this.gone();
  }

  // ── from the stream ──

  readBody(): void {
    this.body.start();
    if (this.state !== "body" && this.state !== "tunnel") return;
    this.progressed = true;
    this.#batchOpen = true;
    this.#resume();
  }

  pauseBody(): void {
    this.body.pause();
    this.transport.pause();
  }

  resumeBody(): void {
    this.progressed = true;
    if (!this.body.paused) return;
    this.body.resume();
    this.#resume();
  }

  sendInformational(status: number, headers: HeaderList): void {
    if (this.state === "closed" || this.#heads.head.minor === 0) return;
    if (status === 100) this.#expectsContinue = false;
    this.writer.informational(status, headers);
  }

  sendHead(response: HttpResponse, length: number, rawNames: readonly string[] | null): void {
    if (this.state === "closed") return;
    this.progressed = true;
    if (length === TUNNEL) {
      this.state = "tunnel";
      this.requestDone = false;
    } else if (this.host.draining || this.#method === "CONNECT") {
      // After a CONNECT that was refused, what follows may be meant for the tunnel and must not be read as requests.
      this.keepAlive = false;
    }
    this.keepAlive = this.writer.head(
      response,
      length,
      rawNames,
      { method: this.#method, minor: this.#heads.head.minor, trailersAccepted: this.#heads.head.trailersAccepted },
      this.keepAlive && (this.requestDone || this.#canDiscardBody),
    );
  }

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    if (this.state === "closed") return true;
    this.progressed = true;
    return this.writer.body(buffer, from, to);
  }

  sendEnd(trailers: HeaderList): void {
    if (this.state === "closed") return;
    const complete = this.writer.end(trailers);
    this.#responseDone = true;
    if (!complete) this.breakOff();
    else if (this.state === "tunnel" && !this.requestDone) this.transport.end();
    else if (!this.keepAlive) this.finish();
    else this.#next();
  }

  flush(): boolean {
    return this.state === "closed" || this.writer.flush();
  }

  abort(): void {
    if (this.state === "closed") return;
    this.stream = undefined;
    this.breakOff();
  }

  // ── reading ──

  /** Uses `buffer[from, to)` as far as it can be used now; returns where it stopped. */
  #process(buffer: Buffer, from: number, to: number): number {
    let at = from;
    this.#processing = true;
    while (at < to) {
      const before = at;
      const state: ReadState = this.state;
      if (state === "head") {
        if (this.overfull || !this.#turns.begin()) break;
        at = this.#readHead(buffer, at, to);
      } else if (state === "body" && this.body.open && !this.body.paused) at = this.#readBodyBytes(buffer, at, to);
      else if (state === "tunnel" && this.body.open) at = this.#readTunnel(buffer, at, to);
      else if (state === "linger") at = this.discard(to - at, to);
      else if (state === "closed") at = to;
      else break;
      if (at === before && this.state === state) break;
    }
    if (at === to) this.#turns.reset();
    this.#processing = false;
    this.#endBatch();
    return at;
  }

  #onTurn(): void {
    if (this.state !== "head") return;
    try {
      this.#resume();
    } catch (error) {
      this.onFault(error);
    }
  }

  #processHeld(): void {
    const held = this.held;
    const used = this.#process(held.bytes, held.start, held.end);
    // Whoever ends the connection lets go of everything.
    if (held.length > 0) held.consume(used);
  }

  /** Goes on reading, first with held bytes, unless `#process` is running and will do so itself. */
  #resume(): void {
    if (this.#processing) return;
    if (this.held.length > 0) this.#processHeld();
    else this.#endBatch();
    this.#paceReading();
    if (this.#endWaits && !this.#mustWait) this.onEnd();
  }

  /** Reads on unless much is held that cannot be used yet, or nobody takes the body. */
  #paceReading(): void {
    const { state } = this;
    if (state === "linger" || state === "closed") return;
    if (this.held.length >= HELD_LIMIT && (state !== "head" || this.#mustWait)) this.transport.pause();
    else if (!this.body.paused || state === "head" || state === "wait") this.transport.resume();
  }

  #endBatch(): void {
    if (!this.#batchOpen) return;
    this.#batchOpen = false;
    this.stream?.onBodyBatch();
  }

  #readHead(buffer: Buffer, start: number, end: number): number {
    const heads = this.#heads;
    const { begun } = heads;
    const request = heads.read(buffer, start, end, this.host.frontend, this.protocol);
    if (request !== undefined) {
      this.#begin(request);
      return heads.end;
    }
    const { error } = heads;
    if (error === undefined) {
      if (!begun) this.deadline = performance.now() + this.host.frontend.headerReadTimeout;
      return start;
    }
    this.refuse(error.code, error.detail, buffer.subarray(start, end));
    return end;
  }

  #begin(request: HttpRequest): void {
    const { head } = this.#heads;
    this.#method = head.method;
    this.keepAlive = head.keepAlive;
    this.#expectsContinue = head.expectContinue;
    this.deadline = 0;
    this.#responseDone = false;
    this.progressed = false;
    this.requestLength = this.body.begin(head);
    this.requestDone = this.requestLength === 0;
    this.state = this.requestDone ? "wait" : "body";
    const stream = this.host.acceptor.open(this, request);
    this.stream = stream;
    stream.start();
  }

  #readBodyBytes(buffer: Buffer, at: number, end: number): number {
    this.#expectsContinue = false;
    this.progressed = true;
    this.#batchOpen = true;
    const body = this.body;
    const used = body.read(buffer, at, end, this);
    // The stream may have ended the connection, or this side when the body became too large.
    if (this.state !== "body") return end;
    if (used === -1) {
      this.refuse("TG_INVALID_REQUEST", body.error);
      return end;
    }
    if (body.done) this.#endBody(body.trailers);
    return used;
  }

  /** Body bytes without their framing; the chunked decoder hands them over through this. */
  onBody(buffer: Buffer, from: number, to: number): void {
    const limit = this.host.frontend.maxRequestBodySize;
    this.body.received += to - from;
    if (limit === 0 || this.body.received <= limit) this.stream?.onBody(buffer, from, to);
    else if (this.state === "body") this.refuse("TG_BODY_TOO_LARGE", `more than ${limit} bytes`);
  }

  #readTunnel(buffer: Buffer, at: number, end: number): number {
    this.progressed = true;
    this.#batchOpen = true;
    this.body.received += end - at;
    this.stream?.onBody(buffer, at, end);
    return end;
  }

  #endBody(trailers: HeaderList): void {
    if (this.state !== "body") return;
    this.requestDone = true;
    this.#batchOpen = false;
    this.state = "wait";
    if (!this.writer.started) {
      // From here on the upstream has to move, and how long it may take is not for this side to say.
      this.deadline = 0;
      this.progressed = false;
    }
    this.stream?.onBodyEnd(trailers);
    if (this.#responseDone && this.keepAlive) this.#next();
  }

  /** The response is written: the next request may be waiting already. */
  #next(): void {
    if (this.state === "closed") return;
    this.stream = undefined;
    if (!this.requestDone) {
      this.readBody();
      return;
    }
    this.state = "head";
    if (this.host.closesIdle && this.idle && !this.#processing) {
      this.closeIdle();
      return;
    }
    this.startIdling();
    this.#resume();
  }
}
