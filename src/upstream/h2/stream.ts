import { ResponseHead } from "../../http/h1/parse-head.ts";
import { readResponse, readTrailers } from "../../http/h2/fields.ts";
import { CANCEL, errorName, NO_ERROR, PROTOCOL_ERROR } from "../../http/h2/frames.ts";
import type { FieldSection } from "../../http/h2/hpack/decoder.ts";
import { Http2Stream } from "../../http/h2/stream.ts";
import { type HeaderList, removeHeader } from "../../http/message/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { Upstream, UpstreamEvents } from "../connections/upstream.ts";

/** 1xx responses before the final one. */
const MAX_INTERIM = 32;
const NO_HEADERS: HeaderList = [];
/** `onResponse` needs it during the call only. */
const HEAD = new ResponseHead();

/** What a stream uses of its session. */
export interface StreamSession {
  readonly served: number;
  /** Counts the events that the server has caused, on all streams. */
  heard: number;
  /** A request is abandoned before its response was complete. `heardBefore`: `heard` when the request was sent. */
  distrust(heardBefore: number): void;
  /** Whether the server accepts a field section of this size. */
  takes(pseudo: readonly string[], fields: readonly string[]): boolean;
}

/**
 * What is expected next: the head of the response, its body, or bytes of a tunnel. `done`: the caller has received its last event, or
 * has abandoned the exchange.
 */
type State = "head" | "body" | "tunnel" | "done";

/** One exchange on an HTTP/2 connection: validates the response, and reports exactly one end. */
export class UpstreamStream extends Http2Stream implements Upstream {
  readonly served: number;
  readonly #session: StreamSession;
  readonly #method: string;
  readonly #events: UpstreamEvents;
  readonly #heardBefore: number;
  #state: State = "head";
  #requestDone: boolean;
  #interim = 0;
  /** A part of the response has arrived, so the request has been processed. */
  #answered = false;
  /** Bytes of the body that are still to come; UNKNOWN_LENGTH if only the end of the stream delimits it. */
  #left = UNKNOWN_LENGTH;
  #trailers = NO_HEADERS;
  /** `sendBody` has returned false. */
  #blocked = false;

  constructor(session: StreamSession, method: string, requestDone: boolean, events: UpstreamEvents) {
    super();
    this.#session = session;
    this.#method = method;
    this.#requestDone = requestDone;
    this.#events = events;
    this.served = session.served;
    this.#heardBefore = session.heard;
  }

  // ── request side ──

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    if (from < to) this.#blocked = !this.sendData(buffer, from, to);
    return !this.#blocked;
  }

  /** Drops trailers that exceed the server's limit, which is allowed (RFC 9110 6.5.1): the server might end the connection over them. */
  override sendEnd(trailers: readonly string[]): void {
    this.#requestDone = true;
    super.sendEnd(this.#session.takes(NO_HEADERS, trailers) ? trailers : NO_HEADERS);
  }

  /** Nothing to do: the connection writes at the end of each turn of the event loop. */
  flush(): boolean {
    return !this.#blocked;
  }

  destroy(): void {
    if (this.#state === "done") return;
    this.#state = "done";
    // Before the reset, which makes room for the next request.
    this.#session.distrust(this.#heardBefore);
    this.reset(CANCEL);
  }

  // ── response side ──

  onHeaders(section: FieldSection, endStream: boolean): void {
    if (this.#state === "done") return;
    this.#heard();
    if (section.malformed !== "") this.#reject(section.malformed);
    else if (section.tooLarge) this.#reject("the head is too large");
    else if (this.#state !== "head") this.#readTrailers(section.fields, endStream);
    else this.#readHead(section.fields, endStream);
  }

  onData(buffer: Buffer, from: number, to: number): void {
    if (this.#state === "done") return;
    this.#heard();
    if (this.#state === "head") {
      this.#reject("a body before its head");
      return;
    }
    if (this.#left !== UNKNOWN_LENGTH) {
      this.#left -= to - from;
      if (this.#left < 0) {
        this.#reject("the body is longer than its Content-Length");
        return;
      }
    }
    this.#events.onResponseBody(buffer, from, to);
  }

  onBatch(): void {
    if (this.#state !== "done") this.#events.onResponseBatch();
  }

  onEnd(): void {
    if (this.#state === "head") this.#reject("it ends without a head");
    else if (this.#left > 0) this.#reject("the body is shorter than its Content-Length");
    else if (this.#state === "tunnel")
      // The other direction stays open until the client ends it.
      this.#events.onResponseEnd(NO_HEADERS);
    else if (this.#state === "body") this.#complete();
  }

  onReset(_code: number, message: string): void {
    this.#blocked = false;
    const { resetByPeer } = this;
    // Node.js servers may send this instead of END_STREAM if the window is exhausted.
    if (resetByPeer === NO_ERROR && this.#state === "body" && this.#left === 0) {
      this.#complete();
      return;
    }
    if (resetByPeer === NO_ERROR && this.#state === "tunnel") {
      this.#events.onResponseEnd(NO_HEADERS);
      this.onStopped();
      return;
    }
    this.#fail(resetByPeer === undefined ? message : `the upstream reset the stream: ${errorName(resetByPeer)}`);
  }

  /** Servers that end a tunnel may reset the stream without an error instead of waiting for the client's end (RFC 9113 8.1). */
  override onStopped(): void {
    if (this.#state !== "tunnel") return;
    const { resetByPeer } = this;
    if (resetByPeer !== undefined && resetByPeer !== NO_ERROR) {
      this.#fail(`the upstream reset the stream: ${errorName(resetByPeer)}`);
      return;
    }
    this.#state = "done";
    this.#events.onTunnelClosed?.();
  }

  onWritable(): void {
    this.#blocked = false;
    if (this.#state !== "done") this.#events.onUpstreamDrain();
  }

  /** One of the events above has thrown in the caller. */
  onFault(error: unknown): void {
    this.#state = "done";
    this.#events.onUpstreamFault(error);
  }

  #readHead(fields: string[], endStream: boolean): void {
    const response = readResponse(fields);
    if (typeof response === "string") {
      this.#reject(response);
      return;
    }
    const { status, headers, contentLength } = response;
    HEAD.status = status;
    HEAD.headers = headers;
    if (status >= 200) this.#respond(status, headers, contentLength, endStream);
    else if (status === 101) this.#reject("101 is not allowed in HTTP/2");
    else if (endStream) this.#reject("it ends with a 1xx head");
    else if (contentLength >= 0) this.#reject("a 1xx head with Content-Length");
    else if (++this.#interim > MAX_INTERIM) this.#reject("too many 1xx responses");
    else this.#events.onInformational(HEAD);
  }

  #respond(status: number, headers: HeaderList, announced: number, endStream: boolean): void {
    if (this.#method === "CONNECT" && status < 300) {
      this.#state = "tunnel";
      this.#events.onResponse(HEAD, TUNNEL);
      return;
    }
    this.#state = "body";
    // RFC 9110 8.6: a 204 has no Content-Length, and some clients would wait for the bytes.
    if (status === 204) removeHeader(headers, "content-length");
    if (this.#method === "HEAD" || status === 204 || status === 304) this.#left = 0;
    else if (announced >= 0) this.#left = announced;
    else if (endStream) {
      // Without it, a client of HTTP/1.1 would wait for a body (RFC 9112 6.3).
      headers.push("content-length", "0");
      this.#left = 0;
    }
    this.#events.onResponse(HEAD, this.#left);
  }

  #readTrailers(fields: string[], endStream: boolean): void {
    const trailers = readTrailers(fields);
    // RFC 9113 8.5: a tunnel is made of DATA.
    if (this.#state === "tunnel") this.#reject("HEADERS in a tunnel");
    else if (!endStream) this.#reject("a second head, or trailers that do not end it");
    else if (typeof trailers === "string") this.#reject(trailers);
    else this.#trailers = trailers;
  }

  #complete(): void {
    this.#state = "done";
    // After an early response, the rest of the request is not sent.
    if (!this.#requestDone) this.reset(CANCEL);
    this.#events.onResponseEnd(this.#trailers);
  }

  #heard(): void {
    this.#answered = true;
    this.#session.heard++;
  }

  /** The response is malformed (RFC 9113 8.1.1). */
  #reject(detail: string): void {
    this.reset(PROTOCOL_ERROR);
    this.#fail(`invalid response: ${detail}`);
  }

  #fail(message: string): void {
    if (this.#state === "done") return;
    this.#state = "done";
    this.#events.onUpstreamFailure(message, this.#answered);
  }
}
