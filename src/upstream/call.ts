import { type ErrorCode, GatewayError, messageOf } from "../base/errors.ts";
import type { ResponseHead } from "../http/h1/parse-head.ts";
import { requestHeadText } from "../http/h1/serialize.ts";
import { requestFields } from "../http/h2/fields.ts";
import type { HeaderList } from "../http/message.ts";
import { TUNNEL } from "../http/stream.ts";
import type { UpstreamConnection } from "./connection.ts";
import type { Endpoint } from "./endpoint.ts";
import type { UpstreamSession } from "./h2/session.ts";
import type { UpstreamWaiter } from "./h2/session-pool.ts";
import { mayResend } from "./resend.ts";
import type { OnCancel, Upstream, UpstreamEvents } from "./upstream.ts";

/** A call of the gateway's own: to an authorization service, to a mirror. */
export interface CallRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** Default: the name or address of the target. */
  readonly authority?: string;
  /** Without Host, Content-Length and hop-by-hop fields. */
  readonly headers: HeaderList;
  readonly body: Uint8Array;
  /** Milliseconds until the whole response has to be there. */
  readonly timeoutMs: number;
  /** Bytes of body that a response may have; a longer one is an error. */
  readonly maxBytes: number;
  /** Nobody wants the body of the answer: it is read and dropped, however long. */
  readonly dropBody?: boolean;
}

export interface CallResponse {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Uint8Array;
}

/** Methods that announce a body even when there is none (RFC 9110 8.6). */
const EXPECTS_BODY = new Set(["POST", "PUT", "PATCH"]);

/**
 * Sends a request on the endpoint's pool and reads the whole response. Rejects with a GatewayError: TG_UPSTREAM_TIMEOUT,
 * TG_UPSTREAM_FAILED or TG_DNS_FAILED; never settles when it is cancelled.
 */
export function callUpstream(endpoint: Endpoint, request: CallRequest, onCancel: OnCancel): Promise<CallResponse> {
  return new Promise((resolve, reject) => {
    const call = new Call(endpoint, request, resolve, reject);
    onCancel(() => call.cancel());
    call.start(false);
  });
}

class Call implements UpstreamEvents, UpstreamWaiter {
  readonly #endpoint: Endpoint;
  readonly #request: CallRequest;
  readonly #resolve: (response: CallResponse) => void;
  readonly #reject: (error: GatewayError) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #startedAt = performance.now();
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #sends = 0;
  #status = 0;
  #headers: HeaderList = [];
  #upstream: Upstream | undefined;
  #cancelConnect: (() => void) | undefined;
  #closed = false;

  constructor(
    endpoint: Endpoint,
    request: CallRequest,
    resolve: (response: CallResponse) => void,
    reject: (error: GatewayError) => void,
  ) {
    this.#endpoint = endpoint;
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = setTimeout(() => this.#fail("TG_UPSTREAM_TIMEOUT", "no answer in time"), request.timeoutMs);
    endpoint.begin();
  }

  /** `fresh`: not on a pooled connection, which proved to be stale. */
  start(fresh: boolean): void {
    if (this.#closed) return;
    const { pool } = this.#endpoint;
    this.#cancelConnect = pool.acquire(pool.http2 === "always" || pool.http2 === "offered", fresh, this);
  }

  /** Nobody waits any more. */
  cancel(): void {
    if (this.#closed) return;
    this.#end();
    this.#endpoint.abandon();
  }

  onConnection(connection: UpstreamConnection): void {
    const { method, path, body } = this.#request;
    const { viaProxy: via } = this.#endpoint.pool;
    // A proxy forwards by the target of the request, and Host has to be the same (RFC 9112 3.2.2).
    const authority = via?.authority ?? this.#authority();
    // The server as a whole has no path: `OPTIONS *` (RFC 9112 3.2.4).
    const target = via === undefined ? path : via.origin + (path === "*" ? "" : path);
    const credentials = via?.authorization === undefined ? [] : ["proxy-authorization", via.authorization];
    const head = requestHeadText(method, target, authority, [...this.#requestHeaders(), ...credentials], null, "");
    this.#upstream = connection;
    connection.send(head, method, body.length, false, this);
    this.#sendBody(connection);
  }

  onSession(session: UpstreamSession): void {
    const { method, path, body } = this.#request;
    const scheme = this.#endpoint.pool.target.tls === undefined ? "http" : "https";
    const head = { method, authority: this.#authority(), path, search: "", headers: this.#requestHeaders() };
    const stream = session.send(requestFields(head, scheme, false), method, body.length, this);
    this.#upstream = stream;
    this.#sendBody(stream);
  }

  onConnectFailure(code: ErrorCode, message: string): void {
    this.#fail(code, message);
  }

  #authority(): string {
    const { pool } = this.#endpoint;
    return this.#request.authority ?? pool.hostname ?? ("path" in pool.target ? "localhost" : pool.name);
  }

  #requestHeaders(): HeaderList {
    const { method, headers, body } = this.#request;
    if (body.length === 0 && !EXPECTS_BODY.has(method)) return headers;
    return [...headers, "content-length", String(body.length)];
  }

  #sendBody(upstream: Upstream): void {
    const { body } = this.#request;
    if (body.length === 0) return;
    upstream.sendBody(Buffer.from(body.buffer, body.byteOffset, body.length), 0, body.length);
    upstream.sendEnd([]);
  }

  onInformational(): void {}

  onResponse(head: ResponseHead, length: number): void {
    if (length === TUNNEL) {
      this.#fail("TG_UPSTREAM_FAILED", "the answer is a switch to another protocol that nobody asked for");
      return;
    }
    this.#status = head.status;
    this.#headers = head.headers;
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    if (this.#closed || this.#request.dropBody === true) return;
    this.#size += to - from;
    if (this.#size > this.#request.maxBytes)
      this.#fail("TG_UPSTREAM_FAILED", `the answer is longer than ${this.#request.maxBytes} bytes`);
    else this.#chunks.push(Buffer.from(buffer.subarray(from, to)));
  }

  onResponseBatch(): void {}

  onResponseEnd(): void {
    if (this.#closed) return;
    this.#upstream = undefined;
    this.#end();
    this.#endpoint.end(this.#status < 500, (performance.now() - this.#startedAt) / 1000);
    this.#resolve({ status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks, this.#size) });
  }

  onUpstreamFailure(message: string, answered: boolean): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    if (upstream !== undefined && mayResend(upstream, this.#request.method, answered, ++this.#sends)) this.start(true);
    else this.#fail("TG_UPSTREAM_FAILED", message);
  }

  onUpstreamDrain(): void {}

  onUpstreamFault(error: unknown): void {
    this.#fail("TG_UPSTREAM_FAILED", messageOf(error));
  }

  #fail(code: ErrorCode, message: string): void {
    if (this.#closed) return;
    this.#end();
    if (code === "TG_POOL_FULL") this.#endpoint.abandon();
    else this.#endpoint.end(false, 0);
    this.#reject(new GatewayError(code, undefined, new Error(message)));
  }

  #end(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#cancelConnect?.();
    this.#upstream?.destroy();
  }
}
