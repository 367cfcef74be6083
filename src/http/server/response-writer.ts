import { httpDate } from "../../base/dates.ts";
import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import { Output } from "../../net/output.ts";
import type { Transport } from "../../net/transport.ts";
import { chunkHeader, LAST_CHUNK, responseHeadText, trailerText } from "../h1/serialize.ts";
import type { HeaderList, HttpResponse } from "../message/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../stream.ts";

type Framing = "none" | "length" | "chunked" | "close" | "tunnel";

/** What the request says about the framing of its response. */
interface ResponseContext {
  readonly method: string;
  readonly minor: 0 | 1;
  readonly trailersAccepted: boolean;
}

const UNREAD_REQUEST: ResponseContext = { method: "GET", minor: 1, trailersAccepted: false };

/** Serializes one response at a time onto a transport: head and small body in one write. */
export class ResponseWriter {
  readonly #output: Output;
  #framing: Framing = "none";
  #left = 0;
  #trailersAccepted = false;
  /** A response is open: `head` was called for it, and `end` was not. */
  started = false;

  constructor(transport: Transport) {
    this.#output = new Output(transport);
  }

  /** A response is open that only the close of the connection delimits. */
  get endsByClose(): boolean {
    return this.started && (this.#framing === "close" || this.#framing === "tunnel");
  }

  /** Returns whether the connection can serve another request after this response. */
  head(
    response: HttpResponse,
    length: number,
    rawNames: readonly string[] | null,
    context: ResponseContext,
    keepAlive: boolean,
  ): boolean {
    const { status } = response;
    let extra = "";
    this.started = true;
    this.#trailersAccepted = context.trailersAccepted;
    // 101 and 2xx to CONNECT have no framing: what follows is not HTTP (RFC 9110 7.8, 9.3.6).
    if (length === TUNNEL) {
      this.#framing = "tunnel";
      this.#output.text(responseHeadText(status, response.headers, rawNames, ""));
      return false;
    }
    // RFC 9112 6.3: no body follows whatever the fields say.
    if (context.method === "HEAD" || status === 204 || status === 304) this.#framing = "none";
    else if (length !== UNKNOWN_LENGTH) {
      this.#framing = "length";
      this.#left = length;
    } else if (context.minor === 1) {
      this.#framing = "chunked";
      extra = "transfer-encoding: chunked\r\n";
    } else {
      // HTTP/1.0 has no chunks: the close ends the body.
      this.#framing = "close";
      keepAlive = false;
    }
    if (!keepAlive) extra += "connection: close\r\n";
    else if (context.minor === 0) extra += "connection: keep-alive\r\n";
    this.#output.text(responseHeadText(status, response.headers, rawNames, extra));
    return keepAlive;
  }

  /**
   * Writes a whole response with the status and text of `code` to a request that cannot be read. Its method is unknown, so the body
   * is always sent. Details are for the log.
   */
  error(code: ErrorCode): void {
    const { status, message } = ERRORS[code];
    const body = Buffer.from(message);
    const headers = ["content-type", "text/plain", "content-length", String(body.length), "date", httpDate()];
    this.head({ status, headers }, body.length, null, UNREAD_REQUEST, false);
    this.body(body, 0, body.length);
    this.end([]);
  }

  /** 1xx: goes out at once, before the response. */
  informational(status: number, headers: HeaderList): void {
    this.#output.text(responseHeadText(status, headers, null, ""));
    this.#output.flush();
  }

  /**
   * Adds body bytes in the framing of the head; false = wait for drain. Bytes beyond the announced length are dropped: the client
   * would read them as the next response (response splitting).
   */
  body(buffer: Buffer, from: number, to: number): boolean {
    if (to === from || this.#framing === "none") return true;
    if (this.#framing === "chunked") {
      this.#output.text(chunkHeader(to - from));
      const more = this.#output.bytes(buffer, from, to);
      this.#output.text("\r\n");
      return more;
    }
    if (this.#framing === "length") {
      if (to - from > this.#left) to = from + this.#left;
      this.#left -= to - from;
    }
    return this.#output.bytes(buffer, from, to);
  }

  /**
   * Ends the response; `flush` is due before the transport ends. Returns false if the response is shorter than announced: the
   * connection must be aborted.
   */
  end(trailers: HeaderList): boolean {
    this.started = false;
    if (this.#framing === "chunked")
      this.#output.text(trailers.length > 0 && this.#trailersAccepted ? trailerText(trailers) : LAST_CHUNK);
    this.#output.flushAtEndOfTurn();
    return this.#framing !== "length" || this.#left === 0;
  }

  /** Sends what was gathered; false = wait for drain. */
  flush(): boolean {
    return this.#output.flush();
  }
}
