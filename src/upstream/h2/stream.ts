import { ResponseHead } from "../../http/h1/parse-head.ts";
import { readResponse, readTrailers } from "../../http/h2/fields.ts";
import { CANCEL, errorName, NO_ERROR, PROTOCOL_ERROR } from "../../http/h2/frames.ts";
import type { FieldSection } from "../../http/h2/hpack/decoder.ts";
import { Http2Stream } from "../../http/h2/stream.ts";
import { type HeaderList, removeHeader } from "../../http/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { Upstream, UpstreamEvents } from "../upstream.ts";

/** 1xx responses before the final one. */
const MAX_INTERIM = 32;
const NO_HEADERS: HeaderList = [];
/** `onResponse` needs it during the call only. */
const HEAD = new ResponseHead();

/** The connection of a stream. */
export interface StreamSession {
  readonly served: number;
  /** The server has answered in HTTP/1.1: it has processed nothing, and the request is made again as that. */
  readonly speaksHttp1: boolean;
  /** Counts what has come from the server, on all streams. */
  heard: number;
  /** A request is given up before its response was complete; `heardBefore`: `heard` when it was sent. */
  distrust(heardBefore: number): void;
  /** Whether the server takes a field section of this size. */
  takes(pseudo: readonly string[], fields: readonly string[]): boolean;
}

/**
 * What is expected next: the head of the response, its body, or bytes of a tunnel. `done`: the caller has had its last event, or
 * wants no more.
 */
type State = "head" | "body" | "tunnel" | "done";

/** One exchange on a connection that speaks HTTP/2: judges what comes as a response, and reports exactly one end. */
export class UpstreamStream extends Http2Stream implements Upstream {
  readonly served: number;
  readonly #session: StreamSession;
  readonly #method: string;
  readonly #events: UpstreamEvents;
  readonly #heardBefore: number;
  #state: State = "head";
  #requestDone: boolean;
  #interim = 0;
  /** Some of the response has come, so the request has been processed. */
  #answered = false;
  /** Bytes of the body that are still to come; UNKNOWN_LENGTH where the end of the stream says it. */
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

  /** Trailers may be dropped (RFC 9110 6.5.1), and are if the server does not take them: it may end the connection for them. */
  override sendEnd(trailers: readonly string[]): void {
    this.#requestDone = true;
    super.sendEnd(this.#session.takes(NO_HEADERS, trailers) ? trailers : NO_HEADERS);
  }

  /** The connection gathers what is written in one turn. */
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
    if (section.malformed !== "") this.#refuse(section.malformed);
    else if (section.tooLarge) this.#refuse("the head is too large");
    else if (this.#state !== "head") this.#readTrailers(section.fields, endStream);
    else this.#readHead(section.fields, endStream);
  }

  onData(buffer: Buffer, from: number, to: number): void {
    if (this.#state === "done") return;
    this.#heard();
    if (this.#state === "head") {
      this.#refuse("a body before its head");
      return;
    }
    if (this.#left !== UNKNOWN_LENGTH) {
      this.#left -= to - from;
      if (this.#left < 0) {
        this.#refuse("the body is longer than its Content-Length");
        return;
      }
    }
    this.#events.onResponseBody(buffer, from, to);
  }

  onBatch(): void {
    if (this.#state !== "done") this.#events.onResponseBatch();
  }

  onEnd(): void {
    if (this.#state === "head") this.#refuse("it ends without a head");
    else if (this.#left > 0) this.#refuse("the body is shorter than its Content-Length");
    else if (this.#state === "tunnel")
      // The other direction goes on until the client ends it.
      this.#events.onResponseEnd(NO_HEADERS);
    else if (this.#state === "body") this.#complete();
  }

  onReset(_code: number, message: string): void {
    this.#blocked = false;
    if (this.#session.speaksHttp1) this.refused = true;
    const { resetByPeer } = this;
    // Servers of Node may do that in the place of an END_STREAM for which the window has no room.
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

  /** Servers that end a tunnel do not wait for the client's end, and reset the stream without an error (RFC 9113 8.1). */
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
      this.#refuse(response);
      return;
    }
    const { status, headers, contentLength } = response;
    HEAD.status = status;
    HEAD.headers = headers;
    if (status >= 200) this.#respond(status, headers, contentLength, endStream);
    else if (status === 101) this.#refuse("101 has no place in HTTP/2");
    else if (endStream) this.#refuse("it ends with a 1xx head");
    else if (contentLength >= 0) this.#refuse("a 1xx head with Content-Length");
    else if (++this.#interim > MAX_INTERIM) this.#refuse("too many 1xx responses");
    else this.#events.onInformational(HEAD);
  }

  #respond(status: number, headers: HeaderList, announced: number, endStream: boolean): void {
    if (this.#method === "CONNECT" && status < 300) {
      this.#state = "tunnel";
      this.#events.onResponse(HEAD, TUNNEL);
      return;
    }
    this.#state = "body";
    // RFC 9110 8.6: such a response has no length, and some clients would wait for the bytes.
    if (status === 204) removeHeader(headers, "content-length");
    if (this.#method === "HEAD" || status === 204 || status === 304) this.#left = 0;
    else if (announced >= 0) this.#left = announced;
    else if (endStream) {
      // A client of HTTP/1.1 would wait for a body without it (RFC 9112 6.3).
      headers.push("content-length", "0");
      this.#left = 0;
    }
    this.#events.onResponse(HEAD, this.#left);
  }

  #readTrailers(fields: string[], endStream: boolean): void {
    const trailers = readTrailers(fields);
    if (!endStream) this.#refuse("a second head, or trailers that do not end it");
    else if (typeof trailers === "string") this.#refuse(trailers);
    else this.#trailers = trailers;
  }

  #complete(): void {
    this.#state = "done";
    // A server that has answered before it got the whole request is not sent the rest.
    if (!this.#requestDone) this.reset(CANCEL);
    this.#events.onResponseEnd(this.#trailers);
  }

  #heard(): void {
    this.#answered = true;
    this.#session.heard++;
  }

  /** The response is malformed (RFC 9113 8.1.1). */
  #refuse(detail: string): void {
    this.reset(PROTOCOL_ERROR);
    this.#fail(`invalid response: ${detail}`);
  }

  #fail(message: string): void {
    if (this.#state === "done") return;
    this.#state = "done";
    this.#events.onUpstreamFailure(message, this.#answered);
  }
}
