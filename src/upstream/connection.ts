import { ChunkedDecoder } from "../http/h1/chunked.ts";
import { findHeadEnd } from "../http/h1/head-end.ts";
import { parseResponseHead, ResponseHead } from "../http/h1/parse-head.ts";
import { chunkHeader, LAST_CHUNK, trailerText } from "../http/h1/serialize.ts";
import { latin1 } from "../http/latin1.ts";
import type { HeaderList } from "../http/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../http/stream.ts";
import type { Transport, TransportHandler } from "../http/transport.ts";

/** Limits on what an upstream may send: its head is read as strictly as a client's. */
const RESPONSE_LIMITS = { maxHeaders: 200, maxTargetSize: 0 };
const MAX_RESPONSE_HEAD = 64 * 1024;
const INLINE_BYTES = 8192;
const NO_HEADERS: HeaderList = [];

/** The caller of one upstream exchange. After `onUpstreamEnd` or `onUpstreamFailure` nothing more follows. */
export interface UpstreamEvents {
  onInformational(head: ResponseHead): void;
  /** `length`: bytes, UNKNOWN_LENGTH, or TUNNEL after a 101. */
  onResponse(head: ResponseHead, length: number): void;
  onResponseBody(buffer: Buffer, from: number, to: number): void;
  /** What one read of the socket brought has been handed over: a good moment to flush. */
  onResponseBatch(): void;
  onResponseEnd(trailers: HeaderList): void;
  /** `answered`: some bytes of a response had arrived. */
  onUpstreamFailure(message: string, answered: boolean): void;
  onUpstreamDrain(): void;
}

/** Where a connection goes when an exchange is over. */
export interface ConnectionOwner {
  /** May be used again. */
  release(connection: UpstreamConnection): void;
  closed(connection: UpstreamConnection): void;
}

type State = "idle" | "head" | "length" | "chunked" | "close" | "tunnel" | "closed";

/** One connection to an upstream that speaks HTTP/1.1; serves one exchange at a time. */
export class UpstreamConnection implements TransportHandler {
  readonly #transport: Transport;
  readonly #owner: ConnectionOwner;
  readonly #head = new ResponseHead();
  #decoder: ChunkedDecoder | undefined;
  #events: UpstreamEvents | undefined;
  #state: State = "idle";
  #partial: Buffer | undefined;
  #left = 0;
  #method = "";
  #requestChunked = false;
  #requestDone = true;
  #reusable = true;
  #answered = false;
  #pending = "";
  #preserveCase = false;
  #halfClosed = false;
  /** Exchanges served before the one under way: above 0 a close before the first byte may mean a stale connection. */
  served = 0;
  /** `performance.now()` ms of the last release; the pool closes connections that idle too long. */
  idleSince = 0;

  constructor(transport: Transport, owner: ConnectionOwner) {
    this.#transport = transport;
    this.#owner = owner;
  }

  get target(): string {
    return `${this.#transport.remoteAddress}:${this.#transport.remotePort}`;
  }

  get usable(): boolean {
    return this.#state === "idle";
  }

  // ── request side ──

  /** Starts an exchange. With a body the head waits for `flush` or the first body bytes. */
  send(headText: string, method: string, length: number, preserveCase: boolean, events: UpstreamEvents): void {
    this.#events = events;
    this.#state = "head";
    this.#method = method;
    this.#requestChunked = length === UNKNOWN_LENGTH;
    this.#requestDone = length === 0;
    this.#answered = false;
    this.#reusable = true;
    this.#preserveCase = preserveCase;
    if (length === 0) this.#transport.writeText(headText);
    else this.#pending = headText;
  }

  /** False = wait for `onUpstreamDrain`. */
  sendBody(buffer: Buffer, from: number, to: number): boolean {
    if (this.#state === "closed" || from === to) return true;
    const before = this.#pending + (this.#requestChunked ? chunkHeader(to - from) : "");
    const after = this.#requestChunked ? "\r\n" : "";
    this.#pending = "";
    const transport = this.#transport;
    if (to - from <= INLINE_BYTES) return transport.writeText(before + latin1(buffer, from, to) + after);
    const copy = Buffer.from(buffer.subarray(from, to));
    if (before === "" && after === "") return transport.writeOwned(copy);
    transport.cork();
    if (before !== "") transport.writeText(before);
    let more = transport.writeOwned(copy);
    if (after !== "") more = transport.writeText(after);
    transport.uncork();
    return more;
  }

  sendEnd(trailers: HeaderList): void {
    if (this.#state === "closed") return;
    this.#requestDone = true;
    if (this.#requestChunked) this.#pending += trailers.length > 0 ? trailerText(trailers) : LAST_CHUNK;
    this.flush();
    if (this.#state === "tunnel") this.#transport.end();
    else if (this.#state === "idle") this.#settle();
  }

  flush(): void {
    if (this.#pending === "" || this.#state === "closed") return;
    const text = this.#pending;
    this.#pending = "";
    this.#transport.writeText(text);
  }

  pause(): void {
    this.#transport.pause();
  }

  resume(): void {
    this.#transport.resume();
  }

  /** Ends the exchange and the connection: the upstream sees that nobody waits any more. */
  destroy(): void {
    this.#events = undefined;
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#transport.destroy();
  }

  // ── response side ──

  onData(buffer: Buffer, length: number): void {
    let data = buffer;
    let end = length;
    if (this.#partial !== undefined) {
      data = Buffer.concat([this.#partial, buffer.subarray(0, length)]);
      end = data.length;
      this.#partial = undefined;
    }
    const events = this.#events;
    if (events === undefined) {
      // Bytes that no request asked for: the connection cannot be trusted with another one.
      this.destroy();
      return;
    }
    this.#answered = true;
    this.#read(data, end);
    events.onResponseBatch();
  }

  onEnd(): void {
    if (this.#state === "tunnel") {
      // Half-close: the other direction goes on until the client ends it.
      this.#halfClosed = true;
      this.#events?.onResponseEnd(NO_HEADERS);
    } else if (this.#state === "close") this.#finish(NO_HEADERS);
    else this.#fail("the upstream closed the connection");
  }

  onDrain(): void {
    this.#events?.onUpstreamDrain();
  }

  onClose(error: Error | undefined): void {
    if (this.#halfClosed) this.#events = undefined;
    if (this.#state === "close" && error === undefined) this.#finish(NO_HEADERS);
    else this.#fail(error === undefined ? "the upstream closed the connection" : describe(error));
    this.#state = "closed";
    this.#owner.closed(this);
  }

  #read(data: Buffer, end: number): void {
    let at = 0;
    while (at < end) {
      const events = this.#events;
      if (events === undefined) {
        if (this.#state !== "closed") this.destroy();
        return;
      }
      switch (this.#state) {
        case "head": {
          const headEnd = findHeadEnd(data, at, end);
          if (headEnd === -1) {
            if (end - at > MAX_RESPONSE_HEAD) this.#fail("invalid response: the head is too large");
            else this.#partial = Buffer.from(data.subarray(at, end));
            return;
          }
          if (!this.#readHead(latin1(data, at, headEnd), events)) return;
          at = headEnd;
          break;
        }
        case "length": {
          const to = Math.min(end, at + this.#left);
          this.#left -= to - at;
          events.onResponseBody(data, at, to);
          at = to;
          if (this.#left === 0) this.#finish(NO_HEADERS);
          break;
        }
        case "chunked": {
          const decoder = this.#decoder as ChunkedDecoder;
          const used = decoder.push(data, at, end, this);
          if (used === -1) {
            this.#fail(`invalid response: ${decoder.error}`);
            return;
          }
          at = used;
          if (decoder.done) this.#finish(decoder.trailers);
          break;
        }
        case "close":
        case "tunnel":
          events.onResponseBody(data, at, end);
          return;
        default:
          return;
      }
    }
  }

  /** The chunked decoder hands body bytes over through this. */
  onBody(buffer: Buffer, from: number, to: number): void {
    this.#events?.onResponseBody(buffer, from, to);
  }

  #readHead(text: string, events: UpstreamEvents): boolean {
    const head = this.#head;
    const error = parseResponseHead(text, RESPONSE_LIMITS, head, this.#preserveCase);
    if (error !== undefined) {
      this.#fail(`invalid response: ${error.detail}`);
      return false;
    }
    const { status } = head;
    if (status === 101) {
      this.#state = "tunnel";
      this.#reusable = false;
      events.onResponse(head, TUNNEL);
      return true;
    }
    if (status < 200) {
      events.onInformational(head);
      return this.#events !== undefined;
    }
    if (!head.keepAlive) this.#reusable = false;
    const bodiless = this.#method === "HEAD" || status === 204 || status === 304;
    if (bodiless || (!head.chunked && head.contentLength === 0)) {
      this.#state = "length";
      events.onResponse(head, 0);
      this.#finish(NO_HEADERS);
    } else if (head.chunked) {
      this.#decoder ??= new ChunkedDecoder();
      this.#decoder.reset();
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
    return true;
  }

  /** The response is complete. A request body that is still being sent goes on until its end or `destroy`. */
  #finish(trailers: HeaderList): void {
    const events = this.#events;
    if (events === undefined) return;
    this.#events = undefined;
    this.#state = "idle";
    if (this.#requestDone) this.#settle();
    events.onResponseEnd(trailers);
    if (!this.#requestDone) this.destroy();
  }

  #settle(): void {
    if (this.#state !== "idle") return;
    if (this.#reusable) {
      this.served++;
      this.#transport.resume();
      this.#owner.release(this);
    } else this.destroy();
  }

  #fail(message: string): void {
    const events = this.#events;
    const answered = this.#answered;
    this.destroy();
    events?.onUpstreamFailure(message, answered);
  }
}

/** The text of a socket error: its code and what was attempted, without a stack. */
export function describe(error: Error): string {
  return error.message === "" ? String((error as { code?: unknown }).code ?? "connection failed") : error.message;
}
