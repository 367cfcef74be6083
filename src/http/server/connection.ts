import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import type { Sweepable } from "../../base/sweeper.ts";
import type { Frontend } from "../../ir/ir.ts";
import { ChunkedDecoder } from "../h1/chunked.ts";
import { findHeadEnd, prefixError, skipLeadingCrlf } from "../h1/head-end.ts";
import { type HeadError, parseRequestHead, RequestHead } from "../h1/parse-head.ts";
import { parseTarget } from "../h1/target.ts";
import { latin1 } from "../latin1.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "../message.ts";
import { type Downstream, type ServerStream, type StreamAcceptor, TUNNEL, UNKNOWN_LENGTH } from "../stream.ts";
import type { Transport, TransportHandler } from "../transport.ts";
import { ResponseWriter } from "./response-writer.ts";

/** Pipelined or early bytes that are held while they cannot be used; more stop the reading. */
const HELD_LIMIT = 64 * 1024;
/** After a response whose request body was not read: how long and how much is thrown away before the close. */
const LINGER_MS = 2000;
const LINGER_BYTES = 1024 * 1024;
/** A client gets this long before `minBodyRate` is asked of it. */
const RATE_GRACE_MS = 10_000;
const NO_HEADERS: HeaderList = [];

/** head: between requests or inside a head; body: reading one; wait: request read, response not ended. */
type ReadState = "head" | "body" | "wait" | "tunnel" | "linger" | "closed";

/** What all connections of a bind share. */
export interface ConnectionHost {
  /** Limits in force; read for each request, so a reload reaches open connections. */
  readonly frontend: Frontend;
  readonly acceptor: StreamAcceptor;
  /** Open connections are asked to close after the response under way. */
  readonly draining: boolean;
  onConnectionClose(connection: ServerConnection): void;
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
  #held: Buffer | undefined;
  /** Bytes of `#held` that were checked already and can begin a valid head. */
  #scanned = 0;
  #processing = false;
  #bodyOpen = false;
  #bodyLeft = 0;
  #bodyRead = 0;
  #bodyStart = 0;
  #requestDone = true;
  #responseDone = true;
  #keepAlive = true;
  #expectsContinue = false;
  #peerEnded = false;
  #method = "";
  /** When what the connection waits for now is given up; `performance.now()` ms, 0 = never. */
  #deadline: number;
  readonly #created = performance.now();
  requestLength = 0;

  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  readonly protocol = "http";

  constructor(transport: Transport, host: ConnectionHost) {
    this.#transport = transport;
    this.#host = host;
    this.#writer = new ResponseWriter(transport);
    this.remoteAddress = transport.remoteAddress;
    this.remotePort = transport.remotePort;
    this.localAddress = transport.localAddress;
    this.localPort = transport.localPort;
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
    const idle = this.#state === "head" && this.#held === undefined;
    return { state: idle ? "idle" : this.#state, ageMs: performance.now() - this.#created };
  }

  // ── from the transport ──

  onData(buffer: Buffer, length: number): void {
    if (this.#held === undefined) {
      this.#process(buffer, length);
      return;
    }
    const joined = Buffer.concat([this.#held, buffer.subarray(0, length)]);
    this.#held = undefined;
    this.#process(joined, joined.length);
  }

  onEnd(): void {
    this.#peerEnded = true;
    if (this.#state === "tunnel") {
      this.#requestDone = true;
      this.#stream?.onBodyEnd(NO_HEADERS);
    } else if (this.#state === "head" && this.#held !== undefined) {
      this.#refuse("TG_INVALID_REQUEST", "the connection ended inside the request head");
    } else this.#gone();
  }

  onDrain(): void {
    this.#touch();
    this.#stream?.onClientDrain();
  }

  onClose(): void {
    this.#gone();
    this.#host.onConnectionClose(this);
  }

  sweep(now: number): void {
    const { frontend, draining } = this.#host;
    if (this.#state === "body" && this.#bodyOpen && frontend.minBodyRate > 0) {
      const elapsed = now - this.#bodyStart - RATE_GRACE_MS;
      if (elapsed > 0 && this.#bodyRead * 1000 < frontend.minBodyRate * elapsed) {
        this.#timeout("the request body arrives too slowly");
        return;
      }
    }
    if (frontend.maxConnectionDuration > 0 && now - this.#created > frontend.maxConnectionDuration) {
      if (this.#state === "head" && this.#held === undefined) this.#close();
      else this.#keepAlive = false;
    } else if (draining && this.#state === "head" && this.#held === undefined) this.#close();
    else if (this.#deadline !== 0 && now >= this.#deadline) this.#expire();
  }

  /** Closes at once when idle; else the response under way says `connection: close`. */
  drain(): void {
    if (this.#state === "head" && this.#held === undefined) this.#close();
  }

  // ── from the stream ──

  readBody(): void {
    this.#bodyOpen = true;
    if (this.#state !== "body") return;
    this.#bodyStart = performance.now();
    this.#resume();
  }

  pauseBody(): void {
    this.#transport.pause();
  }

  resumeBody(): void {
    this.#touch();
    this.#transport.resume();
  }

  sendInformational(status: number, headers: HeaderList): void {
    if (this.#state === "closed" || this.#head.minor === 0) return;
    if (status === 100) this.#expectsContinue = false;
    this.#writer.informational(status, headers);
  }

  sendHead(response: HttpResponse, length: number, rawNames: readonly string[] | null): void {
    if (this.#state === "closed") return;
    if (length === TUNNEL) {
      this.#state = "tunnel";
      this.#requestDone = false;
    } else if (this.#expectsContinue || this.#host.draining) this.#keepAlive = false;
    this.#keepAlive = this.#writer.head(
      response,
      length,
      rawNames,
      { method: this.#method, minor: this.#head.minor, trailersAccepted: this.#head.trailersAccepted },
      this.#keepAlive && this.#requestDone,
    );
  }

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    if (this.#state === "closed") return true;
    return this.#writer.body(buffer, from, to);
  }

  sendEnd(trailers: HeaderList): void {
    if (this.#state === "closed") return;
    const tunnel = this.#state === "tunnel";
    const complete = this.#writer.end(trailers);
    this.#responseDone = true;
    if (!complete) this.#breakOff();
    else if (tunnel && !this.#requestDone) this.#transport.end();
    else if (!this.#keepAlive) this.#finishAndClose();
    else this.#next();
  }

  flush(): void {
    if (this.#state !== "closed") this.#writer.flush();
  }

  abort(): void {
    if (this.#state === "closed") return;
    this.#stream = undefined;
    this.#breakOff();
  }

  // ── reading ──

  #process(buffer: Buffer, length: number): void {
    this.#processing = true;
    let at = 0;
    while (at < length) {
      const before = at;
      const state: ReadState = this.#state;
      if (state === "head") at = this.#readHead(buffer, at, length);
      else if (state === "body" && this.#bodyOpen) at = this.#readBodyBytes(buffer, at, length);
      else if (state === "tunnel") {
        this.#touch();
        this.#stream?.onBody(buffer, at, length);
        at = length;
      } else if (state === "linger") at = this.#discard(length - at) ? length : length;
      else if (state === "closed") at = length;
      else break;
      if (at === before && this.#state === state) break;
    }
    if (at < length && this.#state !== "closed") this.#hold(buffer, at, length);
    this.#processing = false;
  }

  #hold(buffer: Buffer, from: number, to: number): void {
    this.#held = Buffer.from(buffer.subarray(from, to));
    if (this.#state !== "head" && to - from >= HELD_LIMIT) this.#transport.pause();
  }

  /** Goes on with held bytes, unless the loop above is running and will do so itself. */
  #resume(): void {
    this.#transport.resume();
    if (this.#processing) return;
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#process(held, held.length);
  }

  #readHead(buffer: Buffer, start: number, end: number): number {
    const { frontend } = this.#host;
    const from = skipLeadingCrlf(buffer, start, end);
    const headEnd = findHeadEnd(buffer, from, end);
    if (headEnd === -1) {
      const error = prefixError(buffer, from, end, Math.max(from, start + this.#scanned));
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
    const stream = this.#stream;
    const decoder = this.#head.chunked ? this.#decoder : undefined;
    this.#expectsContinue = false;
    this.#touch();
    if (stream === undefined) return end;
    if (decoder === undefined) {
      const to = Math.min(end, at + this.#bodyLeft);
      this.#bodyLeft -= to - at;
      this.#bodyRead += to - at;
      stream.onBody(buffer, at, to);
      if (this.#bodyLeft === 0) this.#endBody(stream, NO_HEADERS);
      return to;
    }
    const limit = this.#host.frontend.maxRequestBodySize;
    const used = decoder.push(buffer, at, end, stream);
    if (used === -1) {
      this.#refuse("TG_INVALID_REQUEST", decoder.error);
      return end;
    }
    this.#bodyRead += used - at;
    if (limit > 0 && this.#bodyRead > limit) {
      this.#refuse("TG_BODY_TOO_LARGE", `more than ${limit} bytes`);
      return end;
    }
    if (decoder.done) this.#endBody(stream, decoder.trailers);
    return used;
  }

  #endBody(stream: ServerStream, trailers: HeaderList): void {
    if (this.#state !== "body") return;
    this.#requestDone = true;
    this.#deadline = 0;
    this.#state = "wait";
    stream.onBodyEnd(trailers);
    if (this.#responseDone && this.#keepAlive) this.#next();
  }

  /** Both sides are done: the next request may be waiting already. */
  #next(): void {
    if (!this.#requestDone || !this.#responseDone || this.#state === "closed") return;
    this.#stream = undefined;
    this.#state = "head";
    if (this.#host.draining && this.#held === undefined && !this.#processing) {
      this.#close();
      return;
    }
    this.#deadline = performance.now() + this.#host.frontend.idleTimeout;
    this.#resume();
    if (this.#peerEnded) this.#close();
  }

  #touch(): void {
    this.#deadline = performance.now() + this.#host.frontend.streamIdleTimeout;
  }

  // ── ending ──

  #refuseHead(error: HeadError, end: number): number {
    this.#refuse(error.code, error.detail);
    return end;
  }

  /** Answers a request that cannot be read, then closes: what follows on the connection has no known boundaries. */
  #refuse(code: ErrorCode, detail: string): void {
    const { status, message } = ERRORS[code];
    const stream = this.#stream;
    this.#stream = undefined;
    this.#held = undefined;
    const answered = this.#writer.started;
    if (answered) this.#breakOff();
    else {
      const body = Buffer.from(`${message}: ${detail}\n`, "latin1");
      const headers = ["content-type", "text/plain", "content-length", String(body.length)];
      const context = { method: "GET", minor: 1, trailersAccepted: false } as const;
      this.#writer.head({ status, headers }, body.length, null, context, false);
      this.#writer.body(body, 0, body.length);
      this.#writer.end(NO_HEADERS);
      this.#requestDone = false;
      this.#finishAndClose();
    }
    if (stream !== undefined) stream.onClientGone();
    else this.#host.acceptor.refused(this, status, detail);
  }

  #timeout(detail: string): void {
    this.#refuse("TG_CLIENT_TIMEOUT", detail);
  }

  #expire(): void {
    if (this.#state === "head" && this.#held !== undefined) this.#timeout("the request head did not arrive in time");
    else if (this.#state === "body" && !this.#writer.started) this.#timeout("the request body stopped arriving");
    else if (this.#state === "head" || this.#state === "linger") this.#close();
    else {
      const stream = this.#stream;
      this.#stream = undefined;
      this.#breakOff();
      stream?.onClientGone();
    }
  }

  /** The response is written; closes without losing it: unread request bytes would turn the close into a reset. */
  #finishAndClose(): void {
    this.#stream = undefined;
    this.#transport.end();
    if (this.#peerEnded || this.#requestDone) {
      this.#state = "linger";
      this.#bodyLeft = LINGER_BYTES;
      this.#deadline = performance.now() + LINGER_MS;
      if (this.#peerEnded) this.#state = "closed";
    } else {
      this.#state = "linger";
      this.#bodyLeft = LINGER_BYTES;
      this.#deadline = performance.now() + LINGER_MS;
      this.#held = undefined;
      this.#transport.resume();
    }
  }

  #discard(bytes: number): boolean {
    this.#bodyLeft -= bytes;
    if (this.#bodyLeft < 0) this.#close();
    return true;
  }

  #gone(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#held = undefined;
    const stream = this.#stream;
    this.#stream = undefined;
    this.#transport.destroy();
    stream?.onClientGone();
  }

  #breakOff(): void {
    const byReset = this.#writer.endsByClose;
    this.#state = "closed";
    this.#held = undefined;
    if (byReset) this.#transport.reset();
    else {
      this.#writer.flush();
      this.#transport.end();
      this.#transport.destroy();
    }
  }

  #close(): void {
    this.#state = "closed";
    this.#transport.destroy();
  }
}

function tooLarge(insideLine: boolean, limit: number): HeadError {
  return insideLine
    ? { code: "TG_URI_TOO_LONG", detail: `the request line is longer than ${limit} bytes` }
    : { code: "TG_HEAD_TOO_LARGE", detail: `more than ${limit} bytes` };
}
