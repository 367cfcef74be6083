import { chunkHeader, LAST_CHUNK, responseHeadText, trailerText } from "../h1/serialize.ts";
import { latin1 } from "../latin1.ts";
import type { HeaderList, HttpResponse } from "../message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../stream.ts";
import type { Transport } from "../transport.ts";

/** Body bytes up to this go out in one string with what is around them; more are copied to a buffer of their own. */
const INLINE_BYTES = 8192;

type Framing = "none" | "length" | "chunked" | "close" | "tunnel";

/** How this response may be framed; decided by the request. */
export interface ResponseContext {
  readonly method: string;
  readonly minor: 0 | 1;
  readonly trailersAccepted: boolean;
}

/** Serializes one response at a time onto a transport: head and small body in one write. */
export class ResponseWriter {
  readonly #transport: Transport;
  #pending = "";
  #framing: Framing = "none";
  #left = 0;
  #trailersAccepted = false;
  /** The response head has been given to `head`. */
  started = false;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** True while a response is open whose end the client sees only by the close of the connection. */
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
    if (length === TUNNEL) {
      this.#framing = "tunnel";
      this.#pending += responseHeadText(status, response.headers, rawNames, "");
      return false;
    }
    if (context.method === "HEAD" || status === 204 || status === 304) this.#framing = "none";
    else if (length !== UNKNOWN_LENGTH) {
      this.#framing = "length";
      this.#left = length;
    } else if (context.minor === 1) {
      this.#framing = "chunked";
      extra = "transfer-encoding: chunked\r\n";
    } else {
      this.#framing = "close";
      keepAlive = false;
    }
    if (!keepAlive) extra += "connection: close\r\n";
    else if (context.minor === 0) extra += "connection: keep-alive\r\n";
    this.#pending += responseHeadText(status, response.headers, rawNames, extra);
    return keepAlive;
  }

  informational(status: number, headers: HeaderList): void {
    this.#transport.writeText(responseHeadText(status, headers, null, ""));
  }

  /** Writes body bytes in the framing of the head; false = wait for drain. Bytes beyond the announced length are cut off. */
  body(buffer: Buffer, from: number, to: number): boolean {
    if (to === from || this.#framing === "none") return true;
    if (this.#framing === "chunked") return this.#write(chunkHeader(to - from), buffer, from, to, "\r\n");
    if (this.#framing === "length") {
      if (to - from > this.#left) to = from + this.#left;
      this.#left -= to - from;
    }
    return this.#write("", buffer, from, to, "");
  }

  /** Ends the response. Returns false when the announced length was not reached: the connection must be broken. */
  end(trailers: HeaderList): boolean {
    this.started = false;
    if (this.#framing === "chunked")
      this.#pending += trailers.length > 0 && this.#trailersAccepted ? trailerText(trailers) : LAST_CHUNK;
    this.flush();
    return this.#framing !== "length" || this.#left === 0;
  }

  flush(): void {
    if (this.#pending === "") return;
    const text = this.#pending;
    this.#pending = "";
    this.#transport.writeText(text);
  }

  #write(before: string, buffer: Buffer, from: number, to: number, after: string): boolean {
    const pending = this.#pending + before;
    this.#pending = "";
    if (to - from <= INLINE_BYTES) {
      this.#pending = "";
      return this.#transport.writeText(pending + latin1(buffer, from, to) + after);
    }
    if (pending === "" && after === "") return this.#transport.writeOwned(Buffer.from(buffer.subarray(from, to)));
    this.#transport.cork();
    if (pending !== "") this.#transport.writeText(pending);
    let more = this.#transport.writeOwned(Buffer.from(buffer.subarray(from, to)));
    if (after !== "") more = this.#transport.writeText(after);
    this.#transport.uncork();
    return more;
  }
}
