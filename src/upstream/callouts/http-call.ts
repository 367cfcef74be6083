import { CollectedBytes } from "../../base/collected-bytes.ts";
import { GatewayError, messageOf } from "../../base/errors.ts";
import type { ResponseHead } from "../../http/h1/parse-head.ts";
import { requestHeadText } from "../../http/h1/serialize.ts";
import { endToEnd, requestStart } from "../../http/h2/fields.ts";
import { FIRST_HOP, headEnd } from "../../http/loop.ts";
import { type HeaderList, type Latin1, madeOf } from "../../http/message/message.ts";
import { TUNNEL } from "../../http/stream.ts";
import type { Balancer } from "../balancers/balancer.ts";
import {
  CALLOUT,
  type CallFailure,
  type CallProtocol,
  UpstreamCall,
  type UpstreamCaller,
} from "../calls/upstream-call.ts";
import type { UpstreamConnection } from "../connections/connection.ts";
import type { OnCancel, Upstream } from "../connections/upstream.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { GrpcStatusError } from "../grpc/status.ts";
import type { UpstreamSession } from "../h2/session.ts";
import type { Pool } from "../pools/pool.ts";

/** Receives start and end of a call, for traces and spans. */
export interface CalloutObserver {
  /** Sent with the call, unless its policies remove it (W3C Trace Context). */
  readonly traceparent?: string;
  /** `target` as `host:port`. */
  started(target: string): void;
  ended(status: number | null, error: string | null): void;
}

/** A callout, such as to an authorization service or a mirror. */
export interface CalloutRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** Default: the name or address of the target. */
  readonly authority?: string;
  /** Without Host, Content-Length and hop-by-hop fields. */
  readonly headers: HeaderList;
  readonly body: Uint8Array;
  /** Milliseconds for the whole call, up to the end of the response. */
  readonly timeoutMs: number;
  /** Limit of the response's body in bytes; a longer one is an error. */
  readonly maxBytes: number;
  /**
   * Whether the head of a response with this status decides, as for a denial: then the response stands even if its body is too long, truncated
   * or late. Required, so that no caller that tolerates failures forgets it; `NEEDS_BODY` if a broken body is a failure.
   */
  readonly headDecides: (status: number) => boolean;
  /** The body of the response is read and dropped, however long it is, as for a mirror. */
  readonly dropBody?: boolean;
  /** A gRPC call, which is sent as HTTP/2 unless the settings of the target exclude that. */
  readonly grpc?: boolean;
  /** CDN-Loop of the call (loop.ts). Default: that of a call that belongs to no request. */
  readonly loop?: Latin1 | undefined;
}

export interface CalloutResponse {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Uint8Array;
  /** Why the body is missing, if the head decides by itself; `body` is then empty. */
  readonly cut?: string;
}

/**
 * The service has responded, but the response is unreadable: the `cause` of the GatewayError. This differs from no response: it may have
 * been a denial, and a client that can cause such a response must not be let through.
 */
export class UnreadableAnswer extends Error {}

/** Whether a call has failed because its response is unreadable, over HTTP or gRPC. */
export function isUnreadable(error: unknown): boolean {
  const cause = error instanceof GatewayError ? error.cause : error;
  return cause instanceof UnreadableAnswer || (cause instanceof GrpcStatusError && cause.unreadable);
}

/** `headDecides` of calls that need the complete response. */
export const NEEDS_BODY = (): boolean => false;

/** Methods whose requests carry Content-Length even without a body (RFC 9110 8.6). */
const EXPECTS_BODY = new Set(["POST", "PUT", "PATCH"]);

/**
 * Sends a request to an endpoint of the balancer and reads the whole response. Rejects with a GatewayError whose `cause` is the
 * reason: TG_NO_HEALTHY_BACKENDS, TG_POOL_FULL, TG_UPSTREAM_TIMEOUT, TG_UPSTREAM_FAILED or TG_DNS_FAILED. Never settles after a
 * cancellation.
 */
export async function callUpstream(
  balancer: Balancer,
  request: CalloutRequest,
  onCancel: OnCancel,
  observer?: CalloutObserver,
): Promise<CalloutResponse> {
  const call = new BufferedCall(balancer, request, observer);
  onCancel(() => call.cancel());
  call.start();
  return call.response.promise;
}

/** A call whose request is in memory, and whose response is read into memory up to a limit. */
class BufferedCall implements UpstreamCaller {
  readonly #call = new UpstreamCall(this, CALLOUT);
  readonly balancer: Balancer;
  failed: Set<Endpoint> | undefined;
  readonly #request: CalloutRequest;
  readonly #observer: CalloutObserver | undefined;
  readonly response = Promise.withResolvers<CalloutResponse>();
  readonly #body = new CollectedBytes();
  /** Of the response, once it has come. */
  #head: Pick<CalloutResponse, "status" | "headers"> | undefined;
  #started = false;
  #closed = false;
  /** The whole request is in memory and is sent at once. */
  readonly replayable = true;
  readonly requestSent = true;

  constructor(balancer: Balancer, request: CalloutRequest, observer: CalloutObserver | undefined) {
    this.balancer = balancer;
    this.#request = request;
    this.#observer = observer;
  }

  get method(): string {
    return this.#request.method;
  }

  get loop(): Latin1 | undefined {
    return this.#request.loop;
  }

  start(): void {
    // `onCancel` cancels at once if the exchange is over already.
    if (this.#closed) return;
    if (!this.#call.start(this.#request.timeoutMs, "response"))
      this.response.reject(new GatewayError("TG_NO_HEALTHY_BACKENDS"));
  }

  cancel(): void {
    this.#closed = true;
    this.#call.abandon({ countFailure: false });
  }

  chooseEndpoint(): Endpoint | undefined {
    return this.balancer.choose(undefined, this.failed);
  }

  /** A replay is part of the same call: it is reported once. */
  prepare({ pool }: Endpoint): CallProtocol {
    if (!this.#started) this.#observer?.started(pool.name);
    this.#started = true;
    const use = pool.http2;
    if (this.#request.grpc === true && use !== "never") return "http2";
    return use === "always" || use === "offered" ? "http2" : "http1";
  }

  onConnection(connection: UpstreamConnection, call: UpstreamCall): void {
    const pool = call.endpoint?.pool;
    const { method, path, body, loop = FIRST_HOP } = this.#request;
    const via = pool?.viaProxy;
    // A proxy forwards to the target of the request, and Host has to be the same (RFC 9112 3.2.2).
    const authority = via?.authority ?? this.#authority(pool);
    // The server as a whole has no path: `OPTIONS *` (RFC 9112 3.2.4).
    const target = via === undefined ? path : via.origin + (path === "*" ? "" : path);
    const credentials = via?.authorization === undefined ? [] : ["proxy-authorization", via.authorization];
    const head = requestHeadText(
      method,
      target,
      authority,
      [...this.#requestHeaders(), ...credentials],
      null,
      headEnd(loop),
    );
    call.sendHead(connection, head, body.length, false);
    this.#sendBody(connection);
  }

  onSession(session: UpstreamSession, call: UpstreamCall): void {
    const pool = call.endpoint?.pool;
    const { method, path, body, grpc = false, loop = FIRST_HOP } = this.#request;
    const scheme = pool?.target.tls === undefined ? "http" : "https";
    const start = requestStart({ method, authority: this.#authority(pool), path, search: "" }, scheme, grpc, loop);
    this.#sendBody(call.openStream(session, start, endToEnd(this.#requestHeaders()), body.length));
  }

  #authority(pool: Pool | undefined): string {
    const { authority } = this.#request;
    if (authority !== undefined || pool === undefined) return authority ?? "";
    return pool.hostname ?? ("path" in pool.target ? "localhost" : pool.name);
  }

  #requestHeaders(): HeaderList {
    const { method, headers, body } = this.#request;
    if (body.length === 0 && !EXPECTS_BODY.has(method)) return headers;
    return madeOf(headers, [...headers, "content-length", String(body.length)]);
  }

  #sendBody(upstream: Upstream): void {
    const { body } = this.#request;
    if (body.length === 0) return;
    upstream.sendBody(Buffer.from(body.buffer, body.byteOffset, body.length), 0, body.length);
    upstream.sendEnd([]);
  }

  onInformational(): void {}

  onResponse(head: ResponseHead, length: number): void {
    if (length === TUNNEL) this.#rejectResponse("the response switches to a protocol that was not requested");
    else this.#head = { status: head.status, headers: head.headers };
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    const { dropBody, maxBytes } = this.#request;
    if (this.#closed || dropBody === true) return;
    this.#body.append(buffer, from, to);
    if (this.#body.size > maxBytes) this.#rejectResponse(`the response is longer than ${maxBytes} bytes`);
  }

  onResponseBatch(): void {}

  onResponseEnd(): void {
    if (this.#closed || this.#head === undefined) return;
    this.#closed = true;
    this.#observer?.ended(this.#head.status, null);
    this.response.resolve({ ...this.#head, body: this.#body.whole() });
  }

  onUpstreamDrain(): void {}

  onCallFailure({ code, message, answered }: Pick<CallFailure, "code" | "message" | "answered">): void {
    this.#closed = true;
    const head = this.#head;
    const decides = head !== undefined && this.#request.headDecides(head.status);
    this.#observer?.ended(decides ? head.status : null, message);
    if (decides) this.response.resolve({ ...head, body: Buffer.alloc(0), cut: message });
    else {
      // If there is a head, it was readable and did not decide.
      const cause = answered && head === undefined ? new UnreadableAnswer(message) : new Error(message);
      this.response.reject(new GatewayError(code, undefined, cause));
    }
  }

  onUpstreamFault(error: unknown): void {
    this.onCallFailure({ code: "TG_UPSTREAM_FAILED", message: messageOf(error), answered: false });
  }

  /** The response cannot be used, which counts as a failure of the endpoint. */
  #rejectResponse(message: string): void {
    this.#call.abandon({ countFailure: true });
    this.onCallFailure({ code: "TG_UPSTREAM_FAILED", message, answered: true });
  }
}
