import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { type Duplex, duplexPair } from "node:stream";
import type { Addresses } from "../net/addresses.ts";
import { type ByteStream, Transport } from "../net/transport.ts";
import type { Connect } from "../upstream/connections/dialer.ts";
import type { AssumedAnswer, AssumedResponse } from "./assumptions.ts";

const NOWHERE: Addresses = {
  remoteAddress: "192.0.2.1",
  remotePort: 0,
  localAddress: "192.0.2.2",
  localPort: 0,
  rawAddress: "192.0.2.1",
  rawPort: 0,
};

/** A request as a backend gets it: names and values of headers alternate. */
export interface SentRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
}

/** What backends do. */
interface AssumedAnswers {
  /** Asked for each connection and each request. `endpoint`: `host:port` */
  answerOf(endpoint: string): AssumedAnswer;
  /** A backend has a request and does not respond. */
  onSilent(): void;
}

/**
 * Backends that exist in memory only: every connection leads to servers of Node.js that respond to each request as it is assumed, and
 * to gRPC calls with an empty message. So a rehearsal sends its requests as the gateway does, over its real engines. They
 * speak the version of HTTP that the gateway would rather have.
 */
export class AssumedBackend {
  /** The requests that have arrived, with their secrets. */
  readonly sent: SentRequest[] = [];
  readonly #answers: AssumedAnswers;
  /** The endpoints of connections: by their socket, in HTTP/2 by their session. */
  readonly #endpoints = new WeakMap<object, string>();
  // As most do, they read the request before they respond.
  readonly #http1 = createServer((request, response) =>
    request.resume().once("end", () => this.#respond(request, response)),
  );
  readonly #http2 = createHttp2Server((request, response) =>
    request.resume().once("end", () => this.#respondHttp2(request, response)),
  );

  constructor(answers: AssumedAnswers) {
    this.#answers = answers;
  }

  readonly connect: Connect = (carries, handler, endpoint) => {
    const answer = this.#answers.answerOf(endpoint);
    if (answer === "refused") {
      const refused = setImmediate(() => handler.onClose(new Error("connection refused: that is assumed")));
      return () => clearImmediate(refused);
    }
    const [near, far] = inMemory();
    const isHttp2 = carries === "http2";
    // What carries no HTTP ends with the first bytes of its client, such as those of a handshake, or with its end.
    if (carries === "raw" && answer === "reset") far.destroy();
    else if (carries === "raw") far.once("data", () => far.end()).once("end", () => far.end());
    else if (isHttp2) {
      this.#http2.once("session", (session) => this.#endpoints.set(session, endpoint));
      this.#http2.emit("connection", far);
    } else {
      this.#endpoints.set(far, endpoint);
      this.#http1.emit("connection", far);
    }
    let cancel = (): void => {};
    Transport.over(near, NOWHERE, (transport) => {
      cancel = () => transport.destroy();
      return handler.onConnect(transport, isHttp2 ? "h2" : "http/1.1");
    });
    return () => cancel();
  };

  /** undefined: there is no response. `close`: closes the connection. */
  #answerTo(connection: object | undefined, close: () => void): AssumedResponse | undefined {
    const answer = this.#answers.answerOf(this.#endpoints.get(connection ?? this) ?? "");
    if (typeof answer !== "string") return answer;
    if (answer === "timeout") this.#answers.onSilent();
    else close();
    return undefined;
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    const { method = "", url = "", rawHeaders, socket } = request;
    this.sent.push({ method, target: url, headers: rawHeaders });
    const answer = this.#answerTo(socket, () => socket.destroy());
    if (answer === undefined) return;
    response.sendDate = false;
    const { status = 200, headers = {}, body = "" } = answer;
    response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers }).end(body);
  }

  #respondHttp2(request: Http2ServerRequest, response: Http2ServerResponse): void {
    this.sent.push({ method: request.method, target: request.url, headers: request.rawHeaders });
    const { session } = request.stream;
    const answer = this.#answerTo(session, () => session?.destroy());
    if (answer === undefined) return;
    response.sendDate = false;
    const { status = 200, headers = {}, body = "" } = answer;
    if (status !== 200 || request.headers["content-type"]?.startsWith("application/grpc") !== true) {
      response.writeHead(status, headers).end(body);
      return;
    }
    const fields = Map.groupBy(Object.entries(headers), ([name]) => TRAILERS.has(name));
    response.writeHead(status, { "content-type": "application/grpc", ...Object.fromEntries(fields.get(false) ?? []) });
    response.addTrailers({ "grpc-status": "0", ...Object.fromEntries(fields.get(true) ?? []) });
    // An empty message: its flag and length.
    response.end(Buffer.alloc(5));
  }
}

/** How a call has ended. */
const TRAILERS = new Set(["grpc-status", "grpc-message", "grpc-status-details-bin"]);

/** Both ends of a connection in memory. As with sockets, one that closes ends the other after its last bytes. */
export function inMemory(): [near: ByteStream, far: Duplex] {
  const [near, far] = duplexPair({ allowHalfOpen: true });
  near.once("close", () => closeAtEnd(far));
  far.once("close", () => closeAtEnd(near));
  // The gateway reuses the memory of a write once it has ended, which here is before its bytes are read.
  const plain = near.write.bind(near);
  const write = (bytes: Uint8Array | string, ...others: []): boolean =>
    plain(typeof bytes === "string" ? bytes : Buffer.from(bytes), ...others);
  return [Object.assign(near, { write, resetAndDestroy: () => near.destroy() }), far];
}

function closeAtEnd(side: Duplex): void {
  if (side.readableEnded || side.destroyed) {
    side.destroy();
    return;
  }
  side.once("end", () => side.destroy());
  side.push(null);
  // Whoever has paused it would wait for more.
  side.resume();
}
