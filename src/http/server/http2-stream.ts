import { httpDate } from "../../base/dates.ts";
import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import { grpcError, grpcStatusOfError, isGrpc } from "../grpc-reply.ts";
import { endToEnd, readTrailers } from "../h2/fields.ts";
import { CANCEL, CONNECT_ERROR, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR } from "../h2/frames.ts";
import type { FieldSection } from "../h2/hpack/decoder.ts";
import { parsePriority } from "../h2/priority.ts";
import { malformed, type RequestError, RequestReader } from "../h2/request-head.ts";
import { Http2Stream } from "../h2/stream.ts";
import { type Fields, type HeaderList, type HttpResponse, madeOf } from "../message/message.ts";
import { BodyRate } from "../pace.ts";
import {
  type ClientConnection,
  type ConnectionLimits,
  type Downstream,
  type ServerStream,
  type StreamAcceptor,
  TUNNEL,
  UNKNOWN_LENGTH,
} from "../stream.ts";
import { ACCEPT_FIELD, KEY_FIELD, webSocketKey } from "../websocket.ts";

/** What a request's stream uses of its connection. */
export interface RequestConnection {
  readonly peer: ClientConnection;
  readonly frontend: ConnectionLimits;
  readonly acceptor: StreamAcceptor;
  /** Why its streams end when it closes. */
  readonly endsWith: ErrorCode;
  /** `endBatch` of the stream follows when the current read has been handed over. */
  batch(stream: RequestStream): void;
  /** A defect of the gateway has ended the stream. */
  onStreamFault(error: unknown): void;
}

/** Reading never yields, so one reader serves every connection of the thread. */
const READER = new RequestReader();
const NO_HEADERS: HeaderList = [];
const NOT_IMPLEMENTED = 501;

/** Rejected in trailers: some servers apply them there too. */
const FRAMING: ReadonlySet<string> = new Set(["connection", "content-length", "transfer-encoding", "upgrade"]);

const TOO_LARGE: RequestError = { code: "TG_HEAD_TOO_LARGE", detail: "the header section is too large" };
const TRAILERS_OF_TUNNEL = malformed("HEADERS in a tunnel");
const TRAILERS_WITHOUT_END = malformed("trailers that do not end the stream");
const WRONG_LENGTH = malformed("the body is not as long as Content-Length says");

/** `headers` without the accept key of a WebSocket, which only clients of HTTP/1.1 need (RFC 8441 5.1). */
function withoutProof(headers: HeaderList): HeaderList {
  return madeOf(
    headers,
    headers.filter((_text, at) => headers[at - (at % 2)] !== ACCEPT_FIELD),
  );
}

/** By status; made for the first response that has it. */
const PSEUDO_FIELDS: (readonly string[])[] = [];

function pseudoFields(status: number): readonly string[] {
  PSEUDO_FIELDS[status] ??= [":status", String(status)];
  return PSEUDO_FIELDS[status];
}

/** One request of a client that speaks HTTP/2, and its response. An error in either ends this stream only. */
export class RequestStream extends Http2Stream implements Downstream {
  readonly #connection: RequestConnection;
  #stream: ServerStream | undefined;
  #opened = false;
  /** The body that is being read, or the tunnel. */
  #body: BodyRate | undefined;
  #contentLength = -1;
  /** The response to HEAD has no body. */
  #isHead = false;
  /** The head as received. */
  #received: Fields = NO_HEADERS;
  #requestDone = false;
  #tunnel = false;
  #trailers = NO_HEADERS;
  /** A final head was given to `sendHead`. */
  #started = false;
  /** Bytes of the response's body that are still to come, or UNKNOWN_LENGTH. */
  #left = UNKNOWN_LENGTH;
  /** The client accepts no more for now. */
  #full = false;
  /** `performance.now()` ms of the last sweep that saw progress; 0 = another timeout covers the wait. */
  #waitsSince = 0;
  #progressed = false;
  requestLength = 0;
  upgrade = "";
  trailersAccepted = false;
  hasForwarded = false;
  hasUnderscore = false;
  traceToken = "";
  loop = "";
  /** Names are lower-case in HTTP/2. */
  readonly rawNames = null;

  constructor(connection: RequestConnection) {
    super();
    this.#connection = connection;
  }

  get connection(): ClientConnection {
    return this.#connection.peer;
  }

  get bodyBytes(): number {
    return this.#body?.received ?? 0;
  }

  /** What the request is doing, for the task dump; undefined when its response is only being sent. */
  get activity(): object | undefined {
    return this.#stream?.activity;
  }

  // ── from the client ──

  override onHeaders(section: FieldSection, endStream: boolean): void {
    if (this.#opened) this.#readTrailers(section, endStream);
    else this.#open(section, endStream);
  }

  #open(section: FieldSection, endStream: boolean): void {
    const { peer, frontend, acceptor } = this.#connection;
    this.#opened = true;
    this.#requestDone = endStream;
    this.#received = section.fields;
    const request = sectionError(section) ?? READER.read(section.fields, endStream, peer.protocol, frontend);
    if ("code" in request) {
      this.#isHead = section.fields[section.fields.indexOf(":method") + 1] === "HEAD";
      if (section.lateContentType !== "") section.fields.push("content-type", section.lateContentType);
      this.#reject(request, asText(section.fields));
      return;
    }
    const { protocol, contentLength, priority } = READER;
    this.#contentLength = contentLength;
    this.trailersAccepted = READER.trailersAccepted;
    this.hasForwarded = READER.hasForwarded;
    this.hasUnderscore = READER.hasUnderscore;
    this.traceToken = READER.traceToken;
    this.loop = READER.loop;
    this.#isHead = request.method === "HEAD";
    if (priority !== "" && !this.prioritized) {
      const { urgency, incremental } = parsePriority(priority);
      this.setPriority(urgency, incremental);
    }
    const tunnel = request.method === "CONNECT" || protocol !== "";
    // END_STREAM ends the client's half of the tunnel, which `onEnd` passes on.
    if (tunnel) this.#requestDone = false;
    if (contentLength >= 0) this.requestLength = contentLength;
    else if (!endStream && !tunnel) this.requestLength = UNKNOWN_LENGTH;
    if (protocol !== "") {
      this.upgrade = protocol;
      request.headers.push(KEY_FIELD, webSocketKey());
    }
    // No body is taken before the request has an upstream. A body without bytes only ends, so it needs no pause.
    if (tunnel || (!endStream && contentLength !== 0)) this.pause();
    const stream = acceptor.open(this, request);
    this.#stream = stream;
    stream.start();
  }

  #readTrailers(section: FieldSection, endStream: boolean): void {
    if (this.#stream === undefined) return;
    let error = endStream ? sectionError(section) : TRAILERS_WITHOUT_END;
    // RFC 9113 8.5: a tunnel is made of DATA.
    if (this.#tunnel) error = TRAILERS_OF_TUNNEL;
    const trailers = error ?? readTrailers(section.fields, FRAMING);
    if (typeof trailers === "string") this.#reject(malformed(trailers), undefined);
    else if ("code" in trailers) this.#reject(trailers, undefined);
    else this.#trailers = trailers;
  }

  override onData(buffer: Buffer, from: number, to: number): void {
    const stream = this.#stream;
    // The request got a response before its end: the rest is dropped.
    if (stream === undefined) return;
    const body = this.#body;
    this.#progressed = true;
    if (body === undefined) {
      this.#reject(WRONG_LENGTH, undefined);
      return;
    }
    body.received += to - from;
    if (!this.#tunnel) {
      const { maxRequestBodySize: limit } = this.#connection.frontend;
      if (this.#contentLength >= 0 && body.received > this.#contentLength) {
        this.#reject(WRONG_LENGTH, undefined);
        return;
      }
      if (limit > 0 && body.received > limit) {
        this.#reject({ code: "TG_BODY_TOO_LARGE", detail: `more than ${limit} bytes` }, undefined);
        return;
      }
    }
    stream.onBody(buffer, from, to);
  }

  override onBatch(): void {
    if (!this.#requestDone) this.#stream?.onBodyBatch();
  }

  override onEnd(): void {
    const stream = this.#stream;
    if (this.#requestDone || stream === undefined) return;
    if (!this.#tunnel && this.#contentLength > 0 && this.bodyBytes !== this.#contentLength) {
      this.#reject(WRONG_LENGTH, undefined);
      return;
    }
    this.#requestDone = true;
    // From here on the upstream has to make progress, and its timeouts apply.
    if (!this.#started) this.#suspend();
    if (this.requestLength !== 0 || this.#tunnel) stream.onBodyEnd(this.#trailers);
  }

  override onReset(code: number, message: string): void {
    const defect = code === INTERNAL_ERROR && this.resetByPeer === undefined;
    this.#leave()?.onClientGone(defect ? "TG_INTERNAL" : this.#connection.endsWith, message);
  }

  override onWritable(): void {
    this.#full = false;
    this.#progressed = true;
    this.#stream?.onClientDrain();
  }

  override onFault(error: unknown): void {
    const stream = this.#leave();
    this.#connection.onStreamFault(error);
    stream?.onClientGone("TG_INTERNAL", ERRORS.TG_INTERNAL.message);
  }

  // ── from the exchange ──

  readBody(): void {
    this.#progressed = true;
    this.#body ??= new BodyRate();
    this.#body.start();
    this.resume();
    // Needed even if no byte has arrived: the request's head may be waiting for the end of the batch.
    this.#connection.batch(this);
  }

  pauseBody(): void {
    this.#body?.pause();
    this.pause();
  }

  resumeBody(): void {
    if (this.#body?.paused !== true) return;
    this.#body.resume();
    // After the last byte, the upstream may take its time to respond.
    if (!this.#requestDone) this.#progressed = true;
    this.resume();
  }

  awaitResponseBody(): void {
    this.#progressed = true;
  }

  sendInformational(status: number, headers: HeaderList): void {
    if (!this.#started) this.sendHeaders(pseudoFields(status), endToEnd(headers), false);
  }

  sendHead(response: HttpResponse, length: number): void {
    const { status, headers } = response;
    this.#progressed = true;
    this.#started = true;
    const fields = endToEnd(headers);
    if (length === TUNNEL) {
      this.#tunnel = true;
      // HTTP/2 has no 101: a 2xx makes the stream the tunnel (RFC 8441 5).
      if (status === 101) this.sendHeaders(pseudoFields(200), withoutProof(fields), false);
      else this.sendHeaders(pseudoFields(status), fields, false);
      return;
    }
    // Any 2xx would open the WebSocket (RFC 8441 5), but this response comes from a server that did not switch protocols.
    const pseudo = pseudoFields(this.upgrade !== "" && status < 300 ? NOT_IMPLEMENTED : status);
    this.#left = length;
    // RFC 9110 6.4.1: no body follows, whatever the fields say.
    if (this.#isHead || status === 204 || status === 304) {
      this.#left = 0;
      this.sendHeaders(pseudo, fields, true);
    } else this.sendHeaders(pseudo, fields, false);
  }

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    this.#progressed = true;
    if (this.#left !== UNKNOWN_LENGTH) {
      // Bytes beyond Content-Length would make the response malformed (RFC 9113 8.1.1).
      if (to - from > this.#left) to = from + this.#left;
      this.#left -= to - from;
    }
    if (to === from) return true;
    this.#full = !this.sendData(buffer, from, to);
    return !this.#full;
  }

  override sendEnd(trailers: HeaderList): void {
    // The client's half of a tunnel stays open.
    if (!this.#tunnel) this.#stream = undefined;
    if (this.#left > 0) {
      this.reset(INTERNAL_ERROR);
      return;
    }
    if (!this.#requestDone && !this.#tunnel) this.#dropRest();
    super.sendEnd(trailers);
  }

  flush(): boolean {
    return !this.#full;
  }

  endTunnel(): void {
    this.#leave();
    this.#dropRest();
  }

  abort(): void {
    this.#leave();
    if (!this.#tunnel) this.reset(INTERNAL_ERROR);
    // The counterparts of a TCP RST: RFC 8441 5 for WebSockets, RFC 9113 8.5 for CONNECT.
    else this.reset(this.upgrade === "" ? CONNECT_ERROR : CANCEL);
  }

  // ── deadlines ──

  /** Ends a request that makes no progress, or whose body trickles in. Called once a second. */
  sweep(now: number): void {
    const { streamIdleTimeout, minBodyRate } = this.#connection.frontend;
    const reading = this.#body !== undefined && !this.#requestDone && !this.#tunnel;
    // gRPC clients may keep a stream open without sending, and so may others once their response has begun.
    if (reading && !this.#started && this.#body?.tooSlow(now, minBodyRate) === true && !isGrpc(this.#received)) {
      this.#reject({ code: "TG_CLIENT_TIMEOUT", detail: "the request body arrives too slowly" }, undefined);
    } else if (this.#progressed) {
      this.#progressed = false;
      this.#waitsSince = now;
    } else if (this.#waitsSince > 0 && now - this.#waitsSince >= streamIdleTimeout) {
      if (!reading && this.#started) this.#expire("TG_CLIENT_TIMEOUT", "no progress for too long");
      else if (!reading) this.#expire("TG_UPSTREAM_TIMEOUT", "the response body stopped arriving");
      else if (this.#body?.paused) this.#expire("TG_UPSTREAM_TIMEOUT", "the upstream took no more of the request body");
      else this.#expire("TG_CLIENT_TIMEOUT", "the request body stopped arriving");
    }
  }

  #expire(code: ErrorCode, detail: string): void {
    this.#reject({ code, detail }, undefined);
  }

  /** Another timeout covers the wait, such as those of an upstream call. */
  #suspend(): void {
    this.#waitsSince = 0;
    this.#progressed = false;
  }

  // ── ending ──

  /**
   * Ends a request that cannot be served: by a response, or by RST_STREAM if it is malformed or its response has begun. A gRPC call
   * ends with a status even after its response has begun. `received`: a head that could not be read, as far as it was decoded.
   */
  #reject(error: RequestError, received: Buffer | undefined): void {
    const { code, detail } = error;
    const { peer, acceptor } = this.#connection;
    // Data that waits for the client to read would delay the end.
    const mayEnd = this.#started && error.malformed !== true && !this.hasKept;
    if (mayEnd && this.#stream?.onClientFault?.(code, detail) === true) return;
    const stream = this.#leave();
    if (error.malformed === true) this.reset(PROTOCOL_ERROR);
    else if (this.#started) this.reset(CANCEL);
    else this.#respond(code);
    if (stream !== undefined) stream.onClientGone(code, `${ERRORS[code].message}: ${detail}`);
    else if (received !== undefined) acceptor.rejected(peer, code, detail, received);
  }

  /** Details are for the log. */
  #respond(code: ErrorCode): void {
    const { status, message } = ERRORS[code];
    if (!this.#requestDone) this.#dropRest();
    if (isGrpc(this.#received)) {
      this.sendHead({ status: 200, headers: grpcError(this.#received, grpcStatusOfError(code), message) }, 0);
      this.sendEnd(NO_HEADERS);
      return;
    }
    const body = Buffer.from(message);
    const fields = ["content-type", "text/plain", "content-length", String(body.length), "date", httpDate()];
    this.sendHead({ status, headers: fields }, body.length);
    this.sendBody(body, 0, body.length);
    this.sendEnd(NO_HEADERS);
  }

  /** What the client still sends is not needed (RFC 9113 8.1). */
  #dropRest(): void {
    this.resetAfterEnd(NO_ERROR);
    this.resume();
  }

  #leave(): ServerStream | undefined {
    const stream = this.#stream;
    this.#stream = undefined;
    return stream;
  }
}

function sectionError({ malformed: why, tooLarge }: FieldSection): RequestError | undefined {
  if (why !== "") return malformed(why);
  return tooLarge ? TOO_LARGE : undefined;
}

/** A rejected head in the form of HTTP/1.1, in which the acceptor searches for a trace token. */
function asText(fields: readonly string[]): Buffer {
  let text = "";
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return Buffer.from(text, "latin1");
}
