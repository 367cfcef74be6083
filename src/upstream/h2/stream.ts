import type { ClientHttp2Stream } from "node:http2";
import { ResponseHead } from "../../http/h1/parse-head.ts";
import { readResponse, readTrailers, trailerObject } from "../../http/h2/fields.ts";
import { type HeaderList, removeHeader } from "../../http/message.ts";
import { UNKNOWN_LENGTH } from "../../http/stream.ts";
import { lendDelivered } from "../../net/read-buffer.ts";
import type { Upstream, UpstreamEvents } from "../upstream.ts";

/** The flag of a frame that ends its stream (RFC 9113, section 6). */
const FLAG_END_STREAM = 0x1;
/** Error codes (RFC 9113, section 7). */
export const NO_ERROR = 0x0;
const REFUSED_STREAM = 0x7;
const CANCEL = 0x8;
/** 1xx responses before the final one. */
const MAX_INTERIM = 32;
const NO_HEADERS: HeaderList = [];
/** `onResponse` needs it during the call only. */
const HEAD = new ResponseHead();

/** The connection of a stream. */
export interface StreamSession {
  readonly served: number;
  /** The server has begun to speak. */
  readonly settled: boolean;
  /** Counts what has come from the server, on all streams. */
  heard: number;
  /** Why the connection ended; undefined while it lives. */
  readonly failure: string | undefined;
  passedOver(id: number | undefined): boolean;
  batch(stream: UpstreamStream): void;
  close(): void;
  onStreamClosed(): void;
}

/**
 * One exchange on a connection that speaks HTTP/2. Turns the events of a `node:http2` stream into `UpstreamEvents`, and reports
 * exactly one end, however the library orders its events around resets and lost connections.
 */
export class UpstreamStream implements Upstream {
  readonly served: number;
  readonly #stream: ClientHttp2Stream;
  readonly #session: StreamSession;
  readonly #method: string;
  readonly #heardBefore: number;
  #events: UpstreamEvents | undefined;
  #requestDone: boolean;
  #requestTrailers = NO_HEADERS;
  #interim = 0;
  /** Some of the response has come, so the request has been processed. */
  #answered = false;
  #paused = false;
  /** The response has come to its end, and was not cut off. */
  #complete = false;
  /** Body of a complete response that the caller does not take yet. */
  #held: Buffer[] = [];
  #ended = false;
  #trailers = NO_HEADERS;
  #batched = false;
  #refused = false;
  /** Error code of the RST_STREAM by which the server has ended the stream; undefined where the connection ended. */
  resetCode: number | undefined;

  constructor(
    stream: ClientHttp2Stream,
    session: StreamSession,
    method: string,
    requestDone: boolean,
    events: UpstreamEvents,
  ) {
    this.#stream = stream;
    this.#session = session;
    this.#method = method;
    this.#requestDone = requestDone;
    this.#events = events;
    this.served = session.served;
    this.#heardBefore = session.heard;
    stream.on("headers", (_fields, _flags, raw: string[]) => {
      this.#tell((events) => this.#informational(raw, events));
    });
    stream.on("response", (_fields, flags, raw: string[]) => {
      this.#tell((events) => this.#response(raw, (flags & FLAG_END_STREAM) !== 0, events));
    });
    stream.on("trailers", (_fields, _flags, raw) => {
      this.#trailers = readTrailers(raw);
    });
    stream.on("wantTrailers", () => {
      if (this.#requestDone && !stream.closed) stream.sendTrailers(trailerObject(this.#requestTrailers));
    });
    stream.on("drain", () => this.#tell((events) => events.onUpstreamDrain()));
    stream.on("end", () => this.#end());
    // `close` follows and reports it; without a listener the error would end the thread.
    stream.on("error", () => {});
    stream.on("close", () => this.#closed());
    this.#watchEnd();
  }

  get refused(): boolean {
    return this.#refused;
  }

  // ── request side ──

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    const stream = this.#stream;
    if (stream.destroyed || from === to) return true;
    const bytes = buffer.subarray(from, to);
    const release = lendDelivered(buffer);
    return release === undefined ? stream.write(Buffer.from(bytes)) : stream.write(bytes, release);
  }

  sendEnd(trailers: HeaderList): void {
    this.#requestDone = true;
    this.#requestTrailers = trailers;
    if (!this.#stream.destroyed) this.#stream.end();
  }

  /** The session gathers what is written in one turn. */
  flush(): boolean {
    return this.#stream.destroyed || !this.#stream.writableNeedDrain;
  }

  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    if (!this.#complete) this.#stream.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (!this.#complete) {
      this.#stream.resume();
      return;
    }
    this.#tell((events) => {
      while (!this.#paused) {
        const bytes = this.#held.shift();
        if (bytes === undefined) break;
        events.onResponseBody(bytes, 0, bytes.length);
      }
      if (this.#held.length === 0 && this.#ended) this.#finish();
      else this.#endOfBatch();
    });
  }

  destroy(): void {
    if (this.#events === undefined) return;
    this.#events = undefined;
    this.#reset();
    // A server that has sent nothing all the time may be gone without a FIN: the next requests must not wait for it as well.
    const { settled, heard } = this.#session;
    if (settled && heard === this.#heardBefore) this.#session.close();
  }

  // ── response side ──

  /** What one turn has brought is complete. */
  endBatch(): void {
    this.#batched = false;
    this.#tell((events) => events.onResponseBatch());
  }

  /**
   * The readable side of the stream also ends when the server resets the stream with NO_ERROR, which may cut a body off:
   * only an end before that is the end of the response. What is read of a complete response is held here, however slowly
   * the caller takes it: the stream would throw it away if the connection were lost in the meantime.
   */
  #watchEnd(): void {
    const stream = this.#stream;
    const push = stream.push.bind(stream);
    stream.push = (chunk: unknown) => {
      if (chunk !== null || stream.closed) return push(chunk);
      this.#complete = true;
      const more = push(null);
      if (this.#paused) stream.resume();
      return more;
    };
  }

  #informational(raw: readonly string[], events: UpstreamEvents): void {
    this.#heard();
    const fields = readResponse(raw);
    if (typeof fields === "string") this.#fail(`invalid response: ${fields}`);
    else if (fields.status === 101) this.#fail("invalid response: 101 has no place in HTTP/2");
    else if (++this.#interim > MAX_INTERIM) this.#fail("invalid response: too many 1xx responses");
    else events.onInformational(headOf(fields.status, fields.headers));
  }

  /** `ends`: nothing follows the head. */
  #response(raw: readonly string[], ends: boolean, events: UpstreamEvents): void {
    this.#heard();
    const fields = readResponse(raw);
    if (typeof fields === "string") {
      this.#fail(`invalid response: ${fields}`);
      return;
    }
    const { status, headers } = fields;
    const length = this.#lengthOf(status, headers, fields.contentLength, ends);
    this.#stream.on("data", (bytes: Buffer) => this.#body(bytes));
    events.onResponse(headOf(status, headers), length);
    this.#endOfBatch();
  }

  #lengthOf(status: number, headers: HeaderList, announced: number, ends: boolean): number {
    // RFC 9110 8.6: such a response has no length, and some clients would wait for the bytes.
    if (status === 204) removeHeader(headers, "content-length");
    if (this.#method === "HEAD" || status === 204 || status === 304) return 0;
    if (announced >= 0) return announced;
    if (!ends) return UNKNOWN_LENGTH;
    // A client of HTTP/1.1 would wait for a body without it (RFC 9112 6.3).
    headers.push("content-length", "0");
    return 0;
  }

  #heard(): void {
    this.#answered = true;
    this.#session.heard++;
  }

  #body(bytes: Buffer): void {
    this.#session.heard++;
    if (this.#paused) this.#held.push(bytes);
    else
      this.#tell((events) => {
        events.onResponseBody(bytes, 0, bytes.length);
        this.#endOfBatch();
      });
  }

  #endOfBatch(): void {
    if (this.#batched || this.#events === undefined) return;
    this.#batched = true;
    this.#session.batch(this);
  }

  #end(): void {
    if (!this.#complete) return;
    this.#ended = true;
    if (this.#held.length === 0) this.#tell(() => this.#finish());
  }

  /** A server that has answered before it got the whole request is not sent the rest. */
  #finish(): void {
    const events = this.#events;
    this.#events = undefined;
    if (!this.#requestDone) this.#reset();
    events?.onResponseEnd(this.#trailers);
  }

  #closed(): void {
    const { rstCode = NO_ERROR, id } = this.#stream;
    const { failure } = this.#session;
    if (!this.#ended) {
      this.#refused = rstCode === REFUSED_STREAM || this.#session.passedOver(id);
      if (failure === undefined) this.resetCode = rstCode;
      this.#fail(failure ?? `the upstream reset the stream: ${resetName(rstCode)}`);
    }
    this.#session.onStreamClosed();
  }

  #fail(message: string): void {
    const events = this.#events;
    this.#events = undefined;
    this.#reset();
    try {
      events?.onUpstreamFailure(message, this.#answered);
    } catch (error) {
      events?.onUpstreamFault(error);
    }
  }

  #reset(): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    // Bytes that are there already would keep it open.
    stream.resume();
    // While it reads frames the library puts RST_STREAM off, and ends the body of the request before it.
    setImmediate(() => {
      if (!stream.destroyed) stream.close(CANCEL);
    });
  }

  /** Calls the caller; an exception there ends the exchange instead of the whole thread. */
  #tell(call: (events: UpstreamEvents) => void): void {
    const events = this.#events;
    if (events === undefined) return;
    try {
      call(events);
    } catch (error) {
      this.#events = undefined;
      this.#reset();
      events.onUpstreamFault(error);
    }
  }
}

function headOf(status: number, headers: HeaderList): ResponseHead {
  HEAD.status = status;
  HEAD.headers = headers;
  return HEAD;
}

/** Names of the error codes, by code (RFC 9113 7). */
const RESET_NAMES = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
];

/** The name of an error code of RST_STREAM or GOAWAY. */
export function resetName(code: number): string {
  return RESET_NAMES[code] ?? `error ${code}`;
}
