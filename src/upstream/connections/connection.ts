import { messageOf } from "../../base/errors.ts";
import { ChunkedDecoder } from "../../http/h1/chunked.ts";
import { findHeadEnd, prefixError } from "../../http/h1/head-end.ts";
import { parseResponseHead, ResponseHead } from "../../http/h1/parse-head.ts";
import { chunkHeader, LAST_CHUNK, trailerText } from "../../http/h1/serialize.ts";
import { type HeaderList, removeHeader } from "../../http/message/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import { type PeerAddress, peerAddress } from "../../net/addresses.ts";
import { ByteQueue } from "../../net/byte-queue.ts";
import { latin1Slice } from "../../net/node-internals.ts";
import { Output } from "../../net/output.ts";
import type { Transport, TransportHandler } from "../../net/transport.ts";
import type { ConnectTimes } from "./connect-attempt.ts";
import type { Upstream, UpstreamEvents } from "./upstream.ts";

/** Limits of a response's head, which is parsed as strictly as a request's. */
const RESPONSE_LIMITS = { maxHeaders: 200, maxTargetSize: 0 };
const MAX_RESPONSE_HEAD = 64 * 1024;
/** 1xx responses before the final one. */
const MAX_INTERIM = 32;
/** Every response begins with this; anything else is rejected at once, without waiting for the end of a head. */
const RESPONSE_START = "HTTP/1.";
const NO_HEADERS: HeaderList = [];

/** The pool of a connection. */
export interface ConnectionOwner {
  /** The exchange is over, and the connection can serve another one. */
  release(connection: UpstreamConnection): void;
  /** The socket is closed; the last call. */
  closed(connection: UpstreamConnection): void;
}

/**
 * `idle`: no exchange. `head`: a response's head is expected. `length`, `chunked`, `close`: its body, which ends after
 * Content-Length, with the last chunk, or with the connection (RFC 9112 6.3). `tunnel`: bytes without HTTP.
 */
type State = "idle" | "head" | "length" | "chunked" | "close" | "tunnel" | "closed";

/**
 * One HTTP/1.1 connection to an upstream. It serves one exchange at a time, without pipelining: a slow response would delay the
 * others, and after a failure it would be unclear which of them were processed.
 *
 * Responses are parsed as strictly as requests. If two parsers could read a response differently, a backend, or a client that can
 * make it echo bytes, could insert a response before the next client's (response splitting). So whenever the end of a message is in
 * doubt, the connection is closed instead of reused.
 */
export class UpstreamConnection implements Upstream, TransportHandler {
  readonly #transport: Transport;
  readonly #output: Output;
  readonly #owner: ConnectionOwner;
  readonly #head = new ResponseHead();
  #decoder: ChunkedDecoder | undefined;
  #events: UpstreamEvents | undefined;
  #state: State = "idle";
  /** The beginning of an incomplete head. */
  readonly #partial = new ByteQueue();
  /** Bytes of `#partial` that were searched for the end of the head. */
  #scanned = 0;
  #interim = 0;
  /** Bytes of a body with Content-Length that are still to come. */
  #left = 0;
  #method = "";
  #requestChunked = false;
  #requestDone = true;
  /** `bytesWritten` of the transport when the exchange began. */
  #writtenBefore = 0;
  /** Nothing in the messages rules out another exchange. */
  #reusable = true;
  /** Bytes of the response have arrived: the request has been processed, so it is not replayed. */
  #answered = false;
  /** Response header names are kept as they were written (`headerCase: preserve`). */
  #preserveCase = false;
  /** The upstream has ended its direction of a tunnel. */
  #halfClosed = false;
  served = 0;
  /** How long each step of opening it took. */
  readonly times: ConnectTimes;
  /**
   * `performance.now()` ms of the first sweep after the last release, 0 until then. The pool closes connections that are idle for too
   * long.
   */
  idleSince = 0;

  constructor(transport: Transport, owner: ConnectionOwner, times: ConnectTimes) {
    this.times = times;
    this.#transport = transport;
    this.#output = new Output(transport);
    this.#owner = owner;
    transport.outliveFailedWrites();
  }

  /** Address and port of the other end; undefined for a socket file. */
  get peer(): PeerAddress | undefined {
    return peerAddress(this.#transport);
  }

  /** False once the upstream has closed the connection, which it may do at any time while the connection is idle. */
  get usable(): boolean {
    return this.#state === "idle";
  }

  /** The connection ended while the request was waiting for the end of the turn. HTTP/1.1 has no counterpart of REFUSED_STREAM. */
  get refused(): boolean {
    return this.#unsent();
  }

  // ── request side ──

  /** Starts an exchange. With a body, the head waits for `flush` or is sent with the first body bytes. */
  send(headText: string, method: string, length: number, preserveCase: boolean, events: UpstreamEvents): void {
    this.#events = events;
    this.#state = "head";
    this.#method = method;
    this.#requestChunked = length === UNKNOWN_LENGTH;
    this.#requestDone = length === 0;
    this.#answered = false;
    this.#reusable = true;
    this.#interim = 0;
    this.#preserveCase = preserveCase;
    this.#writtenBefore = this.#transport.bytesWritten;
    this.#output.text(headText);
    if (length === 0) this.#output.flushAtEndOfTurn();
  }

  /** Uses the connection for raw bytes in both directions, without HTTP; it serves nothing else afterwards. */
  openTunnel(events: UpstreamEvents): void {
    this.#events = events;
    this.#state = "tunnel";
    // Never `refused`: the upstream may have begun to work.
    this.#writtenBefore = -1;
    this.#requestChunked = false;
    this.#requestDone = false;
    this.#reusable = false;
  }

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    if (this.#state === "closed" || from === to) return true;
    if (!this.#requestChunked) return this.#output.bytes(buffer, from, to);
    this.#output.text(chunkHeader(to - from));
    const more = this.#output.bytes(buffer, from, to);
    this.#output.text("\r\n");
    return more;
  }

  sendEnd(trailers: HeaderList): void {
    if (this.#state === "closed") return;
    this.#requestDone = true;
    if (this.#requestChunked) this.#output.text(trailers.length > 0 ? trailerText(trailers) : LAST_CHUNK);
    if (this.#state !== "tunnel") this.#output.flushAtEndOfTurn();
    else {
      this.#output.flush();
      this.#transport.end();
    }
  }

  flush(): boolean {
    return this.#state === "closed" || this.#requestDone || this.#output.flush();
  }

  pause(): void {
    this.#transport.pause();
  }

  resume(): void {
    this.#transport.resume();
  }

  /**
   * Also closes the connection, unless nothing of the request was written: otherwise, the rest of the response would be read as the
   * next one.
   */
  destroy(): void {
    if (!this.#takeBack()) this.#close();
  }

  /** Nothing of the request has been written. */
  #unsent(): boolean {
    return this.#transport.bytesWritten === this.#writtenBefore;
  }

  /** False: the upstream may have seen something of the exchange. */
  #takeBack(): boolean {
    if (this.#state !== "head" || this.#answered) return false;
    if (!this.#unsent() || !this.#output.drop()) return false;
    this.#events = undefined;
    this.#release();
    return true;
  }

  #close(): void {
    this.#events = undefined;
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#transport.destroy();
  }

  /** Another exchange may begin. */
  #release(): void {
    this.#state = "idle";
    this.served++;
    this.#transport.resume();
    this.#owner.release(this);
  }

  // ── response side ──

  onData(buffer: Buffer, length: number): void {
    const events = this.#events;
    if (events === undefined) {
      // Bytes without a request would be mistaken for the response to the next one.
      this.#close();
      return;
    }
    if (!this.#answered && this.served > 0 && this.#unsent()) {
      // As above: they would be mistaken for the response to a request that waits to be written.
      this.#fail("the upstream sent bytes before the request");
      return;
    }
    this.#answered = true;
    const partial = this.#partial;
    if (partial.length === 0) this.#read(buffer, 0, length);
    else {
      partial.append(buffer, 0, length);
      const { bytes, start, end } = partial;
      if (this.#read(bytes, start, end)) partial.clear();
    }
    events.onResponseBatch();
  }

  onEnd(): void {
    if (this.#state === "tunnel") {
      // A half-close: the other direction stays open until the client ends it.
      this.#halfClosed = true;
      this.#events?.onResponseEnd(NO_HEADERS);
    } else if (this.#state === "close") this.#finish(NO_HEADERS, false);
    else this.#fail("the upstream closed the connection");
  }

  onDrain(): void {
    this.#events?.onUpstreamDrain();
  }

  onClose(error: Error | undefined): void {
    if (this.#halfClosed && error === undefined) this.#events = undefined;
    this.#fail(error === undefined ? "the upstream closed the connection" : describe(error));
    this.#owner.closed(this);
  }

  onFault(error: unknown): void {
    const events = this.#events;
    this.#close();
    events?.onUpstreamFault(error);
  }

  /** Reads `data[from, end)`. Returns false if the beginning of a head is held in `#partial`. */
  #read(data: Buffer, from: number, end: number): boolean {
    let at = from;
    while (at < end) {
      const events = this.#events;
      if (events === undefined) return true;
      switch (this.#state) {
        case "head": {
          const headEnd = this.#findHead(data, at, end);
          if (headEnd === -1) return this.#partial.length === 0;
          this.#readHead(latin1Slice(data, at, headEnd), events, headEnd < end);
          at = headEnd;
          break;
        }
        case "length": {
          const to = Math.min(end, at + this.#left);
          this.#left -= to - at;
          events.onResponseBody(data, at, to);
          at = to;
          if (this.#left === 0) this.#finish(NO_HEADERS, at < end);
          break;
        }
        case "chunked": {
          const decoder = this.#decoder as ChunkedDecoder;
          at = decoder.push(data, at, end, this);
          if (at === -1) {
            this.#fail(`invalid response: ${decoder.error}`);
            return true;
          }
          if (decoder.done) this.#finish(decoder.trailers, at < end);
          break;
        }
        case "close":
        case "tunnel":
          events.onResponseBody(data, at, end);
          return true;
        default:
          return true;
      }
    }
    return true;
  }

  /** Index after the head that begins at `at`, or -1: then its beginning is held, or the exchange has failed. */
  #findHead(data: Buffer, at: number, end: number): number {
    const scanned = this.#scanned;
    const headEnd = findHeadEnd(data, Math.max(at, at + scanned - 3), end);
    const size = (headEnd === -1 ? end : headEnd) - at;
    this.#scanned = 0;
    if (size > MAX_RESPONSE_HEAD) return this.#reject("the head is too large");
    if (headEnd !== -1) return headEnd;
    const start = latin1Slice(data, at, Math.min(end, at + RESPONSE_START.length));
    if (!RESPONSE_START.startsWith(start)) return this.#reject("it does not begin with HTTP/1.x");
    // The end of an invalid head, for example with lines that end in a bare LF, would never be found.
    const error = prefixError(data, at, end, at + scanned);
    if (error !== undefined) return this.#reject(error.detail);
    this.#scanned = size;
    const partial = this.#partial;
    if (data === partial.bytes) partial.consume(at);
    else partial.append(data, at, end);
    return -1;
  }

  /** Receives body bytes from the chunked decoder. */
  onBody(buffer: Buffer, from: number, to: number): void {
    this.#events?.onResponseBody(buffer, from, to);
  }

  #reject(detail: string): -1 {
    this.#partial.clear();
    this.#fail(`invalid response: ${detail}`);
    return -1;
  }

  /** `more`: bytes follow the head in the same read. */
  #readHead(text: string, events: UpstreamEvents, more: boolean): void {
    const head = this.#head;
    const error = parseResponseHead(text, RESPONSE_LIMITS, head, this.#preserveCase);
    if (error !== undefined) {
      this.#fail(`invalid response: ${error.detail}`);
      return;
    }
    const { status, headers } = head;
    // RFC 9110 8.6: neither has a body, and some clients would wait for the bytes.
    if (status < 200 || status === 204) removeHeader(headers, "content-length");
    if (status === 101) {
      this.#state = "tunnel";
      this.#requestDone = false;
      this.#reusable = false;
      events.onResponse(head, TUNNEL);
    } else if (status < 200) {
      if (++this.#interim > MAX_INTERIM) this.#fail("invalid response: too many 1xx responses");
      else events.onInformational(head);
    } else this.#readFinalHead(head, events, more);
  }

  #readFinalHead(head: ResponseHead, events: UpstreamEvents, more: boolean): void {
    const { status } = head;
    if (!head.keepAlive) this.#reusable = false;
    const bodiless = this.#method === "HEAD" || status === 204 || status === 304;
    // A server that announces a body may also send it, and its bytes would be read as the next response.
    if (status === 204 && (head.chunked || head.contentLength > 0)) this.#reusable = false;
    if (bodiless || (!head.chunked && head.contentLength === 0)) {
      this.#state = "length";
      events.onResponse(head, 0);
      this.#finish(NO_HEADERS, more);
    } else if (head.chunked) {
      this.#decoder ??= new ChunkedDecoder();
      this.#decoder.reset(this.#preserveCase);
      this.#state = "chunked";
      events.onResponse(head, UNKNOWN_LENGTH);
    } else if (head.contentLength > 0) {
      this.#left = head.contentLength;
      this.#state = "length";
      events.onResponse(head, head.contentLength);
    } else {
      this.#state = "close";
      this.#reusable = false;
      events.onResponse(head, UNKNOWN_LENGTH);
    }
  }

  /**
   * The response is complete. The connection is released before the caller's `onResponseEnd`, so that its next request can use
   * it. It is closed instead if the request is still being sent, or if bytes follow the response (`more`): they would be read
   * as the next response.
   */
  #finish(trailers: HeaderList, more: boolean): void {
    const events = this.#events;
    if (events === undefined) return;
    this.#events = undefined;
    // After an early response, the end of the request may still be waiting for the end of the turn, and the connection may close.
    if (this.#requestDone) this.#output.flush();
    if (this.#reusable && this.#requestDone && !more) this.#release();
    else this.#close();
    events.onResponseEnd(trailers);
  }

  #fail(message: string): void {
    const events = this.#events;
    const answered = this.#answered;
    this.#close();
    events?.onUpstreamFailure(message, answered);
  }
}

/** The text of a socket error: its code and what was attempted, without a stack. */
export function describe(error: Error): string {
  return messageOf(error) || String((error as { code?: unknown }).code ?? "connection failed");
}
