import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import type { Sweepable } from "../../base/sweeper.ts";
import type { Frontend } from "../../ir/ir.ts";
import { ChunkedDecoder } from "../h1/chunked.ts";
import { findHeadEnd, prefixError, skipLeadingCrlf } from "../h1/head-end.ts";
import { type HeadError, parseRequestHead, RequestHead } from "../h1/parse-head.ts";
import { parseTarget } from "../h1/target.ts";
import { HeldBytes } from "../held-bytes.ts";
import { latin1 } from "../latin1.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "../message.ts";
import { type Downstream, type ServerStream, type StreamAcceptor, TUNNEL, UNKNOWN_LENGTH } from "../stream.ts";
import type { TlsSession, Transport, TransportHandler } from "../transport.ts";
import { ResponseWriter } from "./response-writer.ts";

/** Pipelined or early bytes that are held while they cannot be used; more stop the reading. */
const HELD_LIMIT = 64 * 1024;
/** A client that pipelines without reading the answers is not read either once so much of them waits. */
const BACKLOG_LIMIT = 64 * 1024;
/** After the last response: how long and how much of what the client still sends is thrown away before the close. */
const LINGER_MS = 2000;
const LINGER_BYTES = 1024 * 1024;
/** A request body up to this is read and thrown away after an answer that did not need it, to keep the connection. */
const DISCARD_BYTES = 64 * 1024;
/** A client gets this long before `minBodyRate` is asked of it. */
const RATE_GRACE_MS = 10_000;
const NO_HEADERS: HeaderList = [];

/**
 * head: between requests or inside a head; body: reading one; wait: request read, response not ended; linger: all is
 * written, what the client still sends is thrown away.
 */
type ReadState = "head" | "body" | "wait" | "tunnel" | "linger" | "closed";

/** What all connections of a bind share. */
export interface ConnectionHost {
  /** Limits in force; read for each request, so a reload reaches open connections. */
  readonly frontend: Frontend;
  readonly acceptor: StreamAcceptor;
  /** Open connections are asked to close after the response under way. */
  readonly draining: boolean;
  onConnectionClose(connection: ServerConnection): void;
  /** A defect of the gateway has ended the connection. */
  onFault(error: unknown): void;
}

/**
 * One client connection that speaks HTTP/1.1 (RFC 9112): reads a request at a time, holds what is pipelined behind it, and
 * writes the answers in order.
 */
export class ServerConnection implements TransportHandler, Downstream, Sweepable {
  readonly #transport: Transport;
  readonly #host: ConnectionHost;
  readonly #writer: ResponseWriter;
  readonly #head = new RequestHead();
  #decoder: ChunkedDecoder | undefined;
  #stream: ServerStream | undefined;
  #state: ReadState = "head";
  /** Bytes not used yet; the start of a head while the state is `head`. */
  readonly #held = new HeldBytes();
  /** Bytes from the start of an incomplete head that were checked already and can begin a valid one. */
  #scanned = 0;
  #processing = false;
  /** Body bytes were handed over that the stream may have gathered. */
  #batchOpen = false;
  #bodyOpen = false;
  #bodyLeft = 0;
  #bodyRead = 0;
  /** `performance.now()` ms from which the rate of the body is measured, moved by the times when nobody took it. */
  #bodyStart = 0;
  /** When the stream stopped taking the body; 0 = it takes it. */
  #bodyPausedAt = 0;
  #requestDone = true;
  #responseDone = true;
  #keepAlive = true;
  /** The client may be waiting for 100 before it sends the body. */
  #expectsContinue = false;
  #method = "";
  #lingerLeft = 0;
  /** When what the connection waits for now is given up; `performance.now()` ms, 0 = never. */
  #deadline: number;
  /** A body has moved since the last sweep, in either direction. */
  #progressed = false;
  readonly #created = performance.now();
  requestLength = 0;

  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  readonly protocol: "http" | "https";
  readonly tls: TlsSession | undefined;

  constructor(transport: Transport, host: ConnectionHost) {
    this.#transport = transport;
    this.#host = host;
    this.#writer = new ResponseWriter(transport);
    this.remoteAddress = transport.remoteAddress;
    this.remotePort = transport.remotePort;
    this.localAddress = transport.localAddress;
    this.localPort = transport.localPort;
    this.protocol = transport.tls === undefined ? "http" : "https";
    this.tls = transport.tls;
    this.#deadline = this.#created + host.frontend.idleTimeout;
  }

  get rawNames(): readonly string[] | null {
    return this.#head.rawNames;
  }

  get upgrade(): string {
    return this.#head.upgrade;
  }

  get trailersAccepted(): boolean {
    return this.#head.trailersAccepted;
  }

  get bytesReceived(): number {
    return this.#transport.bytesRead;
  }

  get bytesSent(): number {
    return this.#transport.bytesWritten;
  }

  /** What the connection is doing, for the task dump. */
  get activity(): { readonly state: string; readonly ageMs: number } {
    return { state: this.#idle ? "idle" : this.#state, ageMs: performance.now() - this.#created };
  }

  get #idle(): boolean {
    return this.#state === "head" && this.#held.length === 0;
  }

  get #overfull(): boolean {
    return this.#transport.backlog >= BACKLOG_LIMIT;
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
    if (held.length >= HELD_LIMIT && (this.#state !== "head" || this.#overfull)) this.#transport.pause();
  }

  /** A client that only closes its sending side cannot be told from one that is gone, and is taken for gone. */
  onEnd(): void {
    if (this.#state === "tunnel") {
      this.#requestDone = true;
      this.#stream?.onBodyEnd(NO_HEADERS);
    } else if (this.#state === "head") {
      if (this.#held.length > 0) this.#refuse("TG_INVALID_REQUEST", "the connection ended inside the request head");
      else this.#closeIdle();
    } else if (this.#state !== "linger") this.#gone();
  }

  onDrain(): void {
    this.#progressed = true;
    if (this.#stream !== undefined) this.#stream.onClientDrain();
    else if (this.#state === "head") this.#resume();
  }

  onClose(): void {
    this.#gone();
    this.#host.onConnectionClose(this);
  }

  onFault(error: unknown): void {
    this.#host.onFault(error);
    this.#gone();
  }

  sweep(now: number): void {
    const { frontend, draining } = this.#host;
    if (this.#state === "linger") {
      // The client gets as long as it makes progress to take the response, and a little more to stop sending.
      if (this.#progressed && this.#transport.backlog === 0) {
        this.#progressed = false;
        this.#deadline = now + LINGER_MS;
      }
    } else if (this.#progressed) {
      this.#progressed = false;
      if (this.#state !== "head") this.#deadline = now + frontend.streamIdleTimeout;
    }
    if (this.#state === "body" && this.#bodyOpen && this.#bodyPausedAt === 0 && frontend.minBodyRate > 0) {
      const elapsed = now - this.#bodyStart - RATE_GRACE_MS;
      if (elapsed > 0 && this.#bodyRead * 1000 < frontend.minBodyRate * elapsed) {
        this.#refuse("TG_CLIENT_TIMEOUT", "the request body arrives too slowly");
        return;
      }
    }
    const tooOld = frontend.maxConnectionDuration > 0 && now - this.#created > frontend.maxConnectionDuration;
    if (tooOld) this.#keepAlive = false;
    if ((tooOld || draining) && this.#idle) this.#closeIdle();
    else if (this.#deadline !== 0 && now >= this.#deadline) this.#expire();
  }

  /** Closes at once when idle; else the response under way says `connection: close`. */
  drain(): void {
    if (this.#idle) this.#closeIdle();
  }

  // ── from the stream ──

  readBody(): void {
    this.#bodyOpen = true;
    if (this.#state !== "body" && this.#state !== "tunnel") return;
    this.#bodyStart = performance.now();
    this.#progressed = true;
    this.#batchOpen = true;
    this.#resume();
  }

  pauseBody(): void {
    if (this.#bodyPausedAt === 0) this.#bodyPausedAt = performance.now();
    this.#transport.pause();
  }

  resumeBody(): void {
    this.#progressed = true;
    if (this.#bodyPausedAt === 0) return;
    this.#bodyStart += performance.now() - this.#bodyPausedAt;
    this.#bodyPausedAt = 0;
    this.#transport.resume();
  }

  sendInformational(status: number, headers: HeaderList): void {
    if (this.#state === "closed" || this.#head.minor === 0) return;
    if (status === 100) this.#expectsContinue = false;
    this.#writer.informational(status, headers);
  }

  sendHead(response: HttpResponse, length: number, rawNames: readonly string[] | null): void {
    if (this.#state === "closed") return;
    this.#progressed = true;
    if (length === TUNNEL) {
      this.#state = "tunnel";
      this.#requestDone = false;
    } else if (this.#host.draining) this.#keepAlive = false;
    this.#keepAlive = this.#writer.head(
      response,
      length,
      rawNames,
      { method: this.#method, minor: this.#head.minor, trailersAccepted: this.#head.trailersAccepted },
      this.#keepAlive && (this.#requestDone || this.#canDiscardBody()),
    );
  }

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    if (this.#state === "closed") return true;
    this.#progressed = true;
    return this.#writer.body(buffer, from, to);
  }

  sendEnd(trailers: HeaderList): void {
    if (this.#state === "closed") return;
    const complete = this.#writer.end(trailers);
    this.#responseDone = true;
    if (!complete) this.#breakOff();
    else if (this.#state === "tunnel" && !this.#requestDone) this.#transport.end();
    else if (!this.#keepAlive) this.#finish();
    else this.#next();
  }

  flush(): boolean {
    return this.#state === "closed" || this.#writer.flush();
  }

  abort(): void {
    if (this.#state === "closed") return;
    this.#stream = undefined;
    this.#breakOff();
  }

  // ── reading ──

  /** Uses `buffer[from, to)` as far as it can be used now; returns where it stopped. */
  #process(buffer: Buffer, from: number, to: number): number {
    let at = from;
    this.#processing = true;
    while (at < to) {
      const before = at;
      const state: ReadState = this.#state;
      if (state === "head" && !this.#overfull) at = this.#readHead(buffer, at, to);
      else if (state === "body" && this.#bodyOpen) at = this.#readBodyBytes(buffer, at, to);
      else if (state === "tunnel" && this.#bodyOpen) at = this.#readTunnel(buffer, at, to);
      else if (state === "linger") at = this.#discard(to - at, to);
      else if (state === "closed") at = to;
      else break;
      if (at === before && this.#state === state) break;
    }
    this.#processing = false;
    this.#endBatch();
    return at;
  }

  #processHeld(): void {
    const held = this.#held;
    const used = this.#process(held.bytes, held.start, held.end);
    // Whoever ends the connection lets go of everything.
    if (held.length > 0) held.consume(used);
  }

  /** Goes on reading, first with held bytes, unless `#process` is running and will do so itself. */
  #resume(): void {
    this.#transport.resume();
    if (this.#processing) return;
    if (this.#held.length > 0) this.#processHeld();
    else this.#endBatch();
  }

  #endBatch(): void {
    if (!this.#batchOpen) return;
    this.#batchOpen = false;
    this.#stream?.onBodyBatch();
  }

  #readHead(buffer: Buffer, start: number, end: number): number {
    const { frontend } = this.#host;
    const from = skipLeadingCrlf(buffer, start, end);
    const seen = start + this.#scanned;
    const headEnd = findHeadEnd(buffer, Math.max(from, seen - 3), end);
    if (headEnd === -1) {
      const error = prefixError(buffer, from, end, Math.max(from, seen));
      if (error !== undefined) return this.#refuseHead(error, end);
      if (end - from > frontend.maxHeadSize) {
        const line = buffer.indexOf(10, from);
        return this.#refuseHead(tooLarge(line === -1 || line >= end, frontend.maxHeadSize), end);
      }
      if (this.#scanned === 0) this.#deadline = performance.now() + frontend.headerReadTimeout;
      this.#scanned = end - start;
      return start;
    }
    this.#scanned = 0;
    if (headEnd - from > frontend.maxHeadSize) return this.#refuseHead(tooLarge(false, frontend.maxHeadSize), end);
    const head = this.#head;
    const text = latin1(buffer, from, headEnd);
    const error = parseRequestHead(text, frontend, head, frontend.headerCase === "preserve");
    if (error !== undefined) return this.#refuseHead(error, end);
    const request: HttpRequest = {
      method: head.method,
      scheme: this.protocol,
      authority: "",
      path: "",
      search: "",
      version: head.minor === 1 ? "HTTP/1.1" : "HTTP/1.0",
      headers: head.headers,
    };
    const badTarget = parseTarget(head.method, head.target, head.host, head.minor, request);
    // An absolute-form target may say https; what counts is how the request came.
    request.scheme = this.protocol;
    if (badTarget !== undefined) return this.#refuseHead(badTarget, end);
    const limit = frontend.maxRequestBodySize;
    if (limit > 0 && head.contentLength > limit)
      return this.#refuseHead({ code: "TG_BODY_TOO_LARGE", detail: `more than ${limit} bytes` }, end);
    this.#begin(request);
    return headEnd;
  }

  #begin(request: HttpRequest): void {
    const head = this.#head;
    this.#method = head.method;
    this.#keepAlive = head.keepAlive;
    this.#expectsContinue = head.expectContinue;
    this.#deadline = 0;
    this.#responseDone = false;
    this.#bodyOpen = false;
    this.#bodyRead = 0;
    this.#bodyPausedAt = 0;
    this.#progressed = false;
    this.requestLength = head.chunked ? UNKNOWN_LENGTH : Math.max(0, head.contentLength);
    this.#requestDone = this.requestLength === 0;
    this.#state = this.#requestDone ? "wait" : "body";
    if (head.chunked) {
      this.#decoder ??= new ChunkedDecoder();
      this.#decoder.reset();
    } else this.#bodyLeft = this.requestLength;
    const stream = this.#host.acceptor.open(this, request);
    this.#stream = stream;
    stream.start();
  }

  #readBodyBytes(buffer: Buffer, at: number, end: number): number {
    this.#expectsContinue = false;
    this.#progressed = true;
    this.#batchOpen = true;
    if (!this.#head.chunked) {
      const to = Math.min(end, at + this.#bodyLeft);
      this.#bodyLeft -= to - at;
      this.onBody(buffer, at, to);
      if (this.#bodyLeft === 0) this.#endBody(NO_HEADERS);
      return to;
    }
    const decoder = this.#decoder as ChunkedDecoder;
    const used = decoder.push(buffer, at, end, this);
    // The stream may have ended the connection, or this side when the body became too large.
    if (this.#state !== "body") return end;
    if (used === -1) {
      this.#refuse("TG_INVALID_REQUEST", decoder.error);
      return end;
    }
    if (decoder.done) this.#endBody(decoder.trailers);
    return used;
  }

  /** Body bytes without their framing; the chunked decoder hands them over through this. */
  onBody(buffer: Buffer, from: number, to: number): void {
    const limit = this.#host.frontend.maxRequestBodySize;
    this.#bodyRead += to - from;
    if (limit === 0 || this.#bodyRead <= limit) this.#stream?.onBody(buffer, from, to);
    else if (this.#state === "body") this.#refuse("TG_BODY_TOO_LARGE", `more than ${limit} bytes`);
  }

  #readTunnel(buffer: Buffer, at: number, end: number): number {
    this.#progressed = true;
    this.#batchOpen = true;
    this.#stream?.onBody(buffer, at, end);
    return end;
  }

  #endBody(trailers: HeaderList): void {
    if (this.#state !== "body") return;
    this.#requestDone = true;
    this.#batchOpen = false;
    this.#state = "wait";
    if (!this.#writer.started) {
      // From here on the upstream has to move, and how long it may take is not for this side to say.
      this.#deadline = 0;
      this.#progressed = false;
    }
    this.#stream?.onBodyEnd(trailers);
    if (this.#responseDone && this.#keepAlive) this.#next();
  }

  /** Whether the rest of the body is small and sure to come, so that reading it is cheaper than another connection. */
  #canDiscardBody(): boolean {
    return this.#state === "body" && !this.#expectsContinue && !this.#head.chunked && this.#bodyLeft <= DISCARD_BYTES;
  }

  /** The response is written: the next request may be waiting already. */
  #next(): void {
    if (this.#state === "closed") return;
    this.#stream = undefined;
    if (!this.#requestDone) {
      this.readBody();
      return;
    }
    this.#state = "head";
    if (this.#host.draining && this.#idle && !this.#processing) {
      this.#closeIdle();
      return;
    }
    this.#deadline = performance.now() + this.#host.frontend.idleTimeout;
    this.#resume();
  }

  // ── ending ──

  #refuseHead(error: HeadError, end: number): number {
    this.#refuse(error.code, error.detail);
    return end;
  }

  /** Answers a request that cannot be read, then closes: what follows on the connection has no known boundaries. */
  #refuse(code: ErrorCode, detail: string): void {
    const { status, message } = ERRORS[code];
    const text = `${message}: ${detail}`;
    const stream = this.#stream;
    this.#stream = undefined;
    if (this.#writer.started) this.#breakOff();
    else {
      const body = Buffer.from(`${text}\n`, "latin1");
      const headers = ["content-type", "text/plain", "content-length", String(body.length)];
      const context = { method: "GET", minor: 1, trailersAccepted: false } as const;
      this.#writer.head({ status, headers }, body.length, null, context, false);
      this.#writer.body(body, 0, body.length);
      this.#writer.end(NO_HEADERS);
      this.#finish();
    }
    if (stream !== undefined) stream.onClientGone(code, text);
    else this.#host.acceptor.refused(this, status, detail);
  }

  #expire(): void {
    if (this.#idle) this.#closeIdle();
    else if (this.#state === "linger") this.#destroy();
    else if (this.#state === "head") this.#refuse("TG_CLIENT_TIMEOUT", "the request head did not arrive in time");
    else if (this.#bodyPausedAt !== 0) this.#refuse("TG_UPSTREAM_TIMEOUT", "the request body was not taken");
    else if (this.#state === "body") this.#refuse("TG_CLIENT_TIMEOUT", "the request body stopped arriving");
    else this.#refuse("TG_CLIENT_TIMEOUT", "nothing moved for too long");
  }

  /** Closes a connection without a request. The client may still be taking the last response. */
  #closeIdle(): void {
    if (this.#transport.backlog > 0) this.#finish();
    else this.#destroy();
  }

  /** All is written; closes without losing it: unread bytes of the client would turn the close into a reset. */
  #finish(): void {
    this.#stream = undefined;
    this.#held.clear();
    this.#state = "linger";
    this.#lingerLeft = LINGER_BYTES;
    this.#progressed = true;
    this.#deadline = performance.now() + this.#host.frontend.streamIdleTimeout;
    this.#transport.end();
    this.#transport.resume();
  }

  #discard(bytes: number, end: number): number {
    this.#lingerLeft -= bytes;
    if (this.#lingerLeft < 0 && this.#transport.backlog === 0) this.#destroy();
    return end;
  }

  #gone(): void {
    if (this.#state === "closed") return;
    const stream = this.#stream;
    this.#stream = undefined;
    this.#destroy();
    stream?.onClientGone("TG_CLIENT_GONE", ERRORS.TG_CLIENT_GONE.message);
  }

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

function tooLarge(insideLine: boolean, limit: number): HeadError {
  return insideLine
    ? { code: "TG_URI_TOO_LONG", detail: `the request line is longer than ${limit} bytes` }
    : { code: "TG_HEAD_TOO_LARGE", detail: `more than ${limit} bytes` };
}
