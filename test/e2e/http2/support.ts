import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionOptions,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";

/** How long a test waits for something that must happen. */
const PATIENCE_MS = 60_000;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: IncomingHttpHeaders;
}

/** A well-behaved client of HTTP/2: that of Node.js. */
export class NodeClient implements AsyncDisposable {
  readonly session: ClientHttp2Session;

  private constructor(session: ClientHttp2Session) {
    this.session = session;
  }

  /** `options.ca`: with TLS. */
  static async connect(
    port: number,
    options: ClientSessionOptions | SecureClientSessionOptions = {},
  ): Promise<NodeClient> {
    const session = connect(`${"ca" in options ? "https" : "http"}://127.0.0.1:${port}`, options);
    session.on("error", () => {});
    await once(session, "connect", { signal: AbortSignal.timeout(PATIENCE_MS) });
    return new NodeClient(session);
  }

  /** Sends a request; the caller ends it. */
  open(headers: OutgoingHttpHeaders, endStream = false): ClientHttp2Stream {
    return this.session.request(headers, { endStream });
  }

  /** A whole request and its whole response; rejects when the stream is reset. */
  async fetch(headers: OutgoingHttpHeaders = {}, body?: string): Promise<Answer> {
    const stream = this.open({ ":path": "/", ...headers }, body === undefined);
    const answer = answerOf(stream);
    if (body !== undefined) stream.end(body);
    return answer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.session.destroyed) return;
    const closed = once(this.session, "close");
    this.session.destroy();
    await closed;
  }
}

export async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  let body = "";
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.on("response", (fields) => {
    headers = fields;
  });
  stream.on("trailers", (fields) => {
    trailers = fields;
  });
  stream.setEncoding("latin1").on("data", (text: string) => {
    body += text;
  });
  await once(stream, "end", { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (stream.rstCode !== 0) throw new Error(`reset: ${stream.rstCode}`);
  return { status: Number(headers[":status"]), headers, body, trailers };
}
