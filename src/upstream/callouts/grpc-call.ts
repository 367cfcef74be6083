/**
 * gRPC as framing over the calls of the upstream room: the same pools, TLS, proxies, names and accounting of endpoints as for HTTP
 * (gRPC over HTTP/2, PROTOCOL-HTTP2). In: a method and encoded messages of a callout. Out: the messages of the service and, once,
 * how the call has ended. Every failure is a GatewayError whose cause is a GrpcStatusError.
 */
import { GatewayError, messageOf } from "../../base/errors.ts";
import { isGrpc } from "../../http/grpc-reply.ts";
import type { ResponseHead } from "../../http/h1/parse-head.ts";
import { endToEnd, requestStart } from "../../http/h2/fields.ts";
import { FIRST_HOP } from "../../http/loop.ts";
import type { Latin1 } from "../../http/message/message.ts";
import { getHeader, type HeaderList, type HttpRequest } from "../../http/message/message.ts";
import { UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { Balancer } from "../balancers/balancer.ts";
import {
  CALLOUT,
  type CallFailure,
  type CallProtocol,
  UpstreamCall,
  type UpstreamCaller,
} from "../calls/upstream-call.ts";
import type { OnCancel } from "../connections/upstream.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { IncomingMessages } from "../grpc/incoming.ts";
import { requestMetadata } from "../grpc/metadata.ts";
import { OutgoingMessages } from "../grpc/outgoing.ts";
import { codeOfReset, type GrpcStatus, GrpcStatusError, STATUS, statusIn, statusOfHttp } from "../grpc/status.ts";
import type { UpstreamSession } from "../h2/session.ts";
import type { CalloutObserver } from "./http-call.ts";

/** A call before its first message. */
interface GrpcRequest {
  /** `/package.Service/Method`. */
  readonly method: string;
  /** Metadata, and the authority; `` = that of the endpoint. */
  readonly head: Pick<HttpRequest, "authority" | "headers">;
  /** Milliseconds until the call has ended; 0 = no deadline. */
  readonly timeoutMs: number;
  /** CDN-Loop of the call (loop.ts). Default: that of a call that belongs to no request. */
  readonly loop?: Latin1 | undefined;
}

/** Receives the events of a call. Nothing follows `onEnd`. */
export interface GrpcStreamEvents {
  onMessage(message: Uint8Array): void;
  /** The service accepts messages again after `write` returned false. */
  onDrain(): void;
  /** `error` is undefined when the service has ended the call with OK. */
  onEnd(error: GatewayError | undefined): void;
}

/** One call with messages both ways. */
export interface GrpcStream {
  /** False = wait for `onDrain`. */
  write(message: Uint8Array): boolean;
  /** No more messages follow; those of the service still arrive. */
  end(): void;
  /** Ends the call in both directions; no event follows. */
  cancel(): void;
  /** No more messages until `resume`; the service is held back by the flow control of HTTP/2. */
  pause(): void;
  resume(): void;
}

/** Up to this many bytes of a stream are kept for a replay: a server that is shutting down has seldom received more. */
const REPLAY_BYTES = 64 * 1024;

/**
 * One message each way. `messageDecides`: whether a response message stands even if the call fails after it, as a denial does; it may throw for a message that it
 * cannot read, which then does not stand. Rejects with a GatewayError: TG_UPSTREAM_TIMEOUT when the deadline has passed, here or at the service,
 * TG_NO_HEALTHY_BACKENDS, TG_POOL_FULL, TG_DNS_FAILED or TG_UPSTREAM_FAILED; never settles when it is cancelled.
 */
export function grpcUnary(
  balancer: Balancer,
  request: GrpcRequest,
  message: Uint8Array,
  onCancel: OnCancel,
  observer: CalloutObserver | undefined,
  messageDecides: (message: Uint8Array) => boolean,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    let response: Uint8Array | undefined;
    const decides = (message: Uint8Array): boolean => {
      try {
        return messageDecides(message);
      } catch {
        return false;
      }
    };
    const events: GrpcStreamEvents = {
      onMessage(received) {
        const more = response !== undefined;
        // The protocol forbids several messages, but one that decides must not be lost.
        if (response === undefined || decides(received)) response = received;
        if (more) call.reject({ code: STATUS.internal, message: "more than one response message" });
      },
      onDrain() {},
      onEnd(error) {
        if (error !== undefined && response !== undefined && decides(response)) resolve(response);
        else if (error !== undefined) reject(error);
        else if (response !== undefined) resolve(response);
        else reject(failed({ code: STATUS.internal, message: "no response message" }));
      },
    };
    const call = new GrpcCall(balancer, request, events, observer, Number.POSITIVE_INFINITY);
    onCancel(() => call.cancel());
    call.write(message);
    call.end();
    call.start();
  });
}

/** Messages both ways. Failures are reported by `onEnd`, possibly before this has returned. */
export function grpcStream(
  balancer: Balancer,
  request: GrpcRequest,
  events: GrpcStreamEvents,
  observer: CalloutObserver | undefined,
): GrpcStream {
  const call = new GrpcCall(balancer, request, events, observer, REPLAY_BYTES);
  call.start();
  return call;
}

/**
 * `new`: no endpoint has been called. `called`: the observer knows the call. `answered`: a message has arrived. `over`: nothing follows,
 * and whatever comes from the service is ignored.
 */
type Stage = "new" | "called" | "answered" | "over";

/**
 * One call, from its first message to its status. `write` and `end` may come before there is a stream; `UpstreamCall` opens one,
 * and another one for a replay.
 */
class GrpcCall implements UpstreamCaller, GrpcStream {
  /** The only method of gRPC; not idempotent, so a call is replayed only where the server has not processed it. */
  readonly method = "POST";
  readonly #call = new UpstreamCall(this, CALLOUT);
  readonly balancer: Balancer;
  failed: Set<Endpoint> | undefined;
  readonly #request: GrpcRequest;
  readonly #events: GrpcStreamEvents;
  readonly #observer: CalloutObserver | undefined;
  readonly #outgoing: OutgoingMessages;
  readonly #incoming = new IncomingMessages((message) => this.#received(message));
  readonly #startedAt = performance.now();
  #stage: Stage = "new";
  #metadata: HeaderList = [];
  /** The error code by which the last stream was reset. */
  #resetCode: number | undefined;

  constructor(
    balancer: Balancer,
    request: GrpcRequest,
    events: GrpcStreamEvents,
    observer: CalloutObserver | undefined,
    replayBytes: number,
  ) {
    this.balancer = balancer;
    this.#request = request;
    this.#events = events;
    this.#observer = observer;
    this.#outgoing = new OutgoingMessages(replayBytes);
  }

  /** Begins the call. Does not throw: failures are reported by `onEnd`. */
  start(): void {
    if (this.#stage === "over") return;
    try {
      if (!this.#call.start(this.#request.timeoutMs, "response"))
        this.#finish(new GatewayError("TG_NO_HEALTHY_BACKENDS"));
    } catch (error) {
      this.#finish(
        error instanceof GatewayError ? error : failed({ code: STATUS.internal, message: messageOf(error) }),
      );
    }
  }

  // ── request side ──

  write(message: Uint8Array): boolean {
    return this.#stage === "over" || this.#outgoing.write(message);
  }

  end(): void {
    this.#outgoing.end();
  }

  /** After a message, the endpoint has worked; before that, a cancelled call says nothing about it. */
  cancel(): void {
    const stage = this.#stage;
    this.#stage = "over";
    if (stage === "answered") this.#call.discard();
    else if (stage !== "over") this.#call.abandon({ countFailure: false });
  }

  pause(): void {
    this.#incoming.paused = true;
    this.#call.upstream?.pause();
  }

  resume(): void {
    if (this.#incoming.resume()) this.#call.upstream?.resume();
  }

  /** The service broke the protocol or a limit: the stream is reset. */
  reject(status: GrpcStatus): void {
    if (this.#stage === "over") return;
    this.#call.abandon({ countFailure: true });
    this.#finish(failed(status));
  }

  // ── getting a stream ──

  get replayable(): boolean {
    return this.#outgoing.repeatable;
  }

  get requestSent(): boolean {
    return this.#outgoing.ended;
  }

  get loop(): Latin1 | undefined {
    return this.#request.loop;
  }

  chooseEndpoint(): Endpoint | undefined {
    return this.balancer.choose(undefined, this.failed);
  }

  /** A replay is part of the same call: it is reported once. */
  prepare({ pool }: Endpoint): CallProtocol {
    if (this.#stage === "new") this.#observer?.started(pool.name);
    this.#stage = "called";
    const { head, timeoutMs } = this.#request;
    // The service gets about what is left of the deadline when the request is sent.
    const left = timeoutMs === 0 ? 0 : Math.max(1, timeoutMs - (performance.now() - this.#startedAt));
    // Here, because it throws for headers that gRPC cannot carry.
    this.#metadata = requestMetadata(head.headers, left);
    return "grpc";
  }

  onSession(session: UpstreamSession, call: UpstreamCall): void {
    const pool = call.endpoint?.pool;
    const { head, method, loop = FIRST_HOP } = this.#request;
    const authority =
      head.authority || (pool === undefined || "path" in pool.target ? "localhost" : (pool.hostname ?? pool.name));
    const scheme = pool?.target.tls === undefined ? "http" : "https";
    const start = requestStart({ method: this.method, authority, path: method, search: "" }, scheme, true, loop);
    const stream = call.openStream(session, start, endToEnd(this.#metadata), UNKNOWN_LENGTH);
    const takesMore = this.#outgoing.sendOn(stream);
    if (this.#incoming.paused) stream.pause();
    if (takesMore) this.onUpstreamDrain();
  }

  /** Only where TLS offers HTTP/1.1 too, as `backendTLS.alpn` may. */
  onConnection(): void {
    this.reject({
      code: STATUS.unavailable,
      message: "the server has agreed to HTTP/1.1 only, which cannot carry gRPC",
    });
  }

  onSendFailed(): void {
    this.#resetCode = this.#outgoing.detach()?.resetByPeer;
  }

  /** Also invoked when a stream has been opened and takes more. */
  onUpstreamDrain(): void {
    if (this.#stage !== "over" && this.#outgoing.unblock()) this.#events.onDrain();
  }

  // ── response side ──

  onInformational(): void {}

  onResponse({ status, headers }: ResponseHead): void {
    this.#outgoing.forget();
    this.#incoming.begin(headers);
    if (status === 200 && isGrpc(headers)) return;
    // A service or proxy that rejects a call may give the reason in a gRPC status, but cannot claim that the call succeeded.
    const said = statusIn(headers);
    const failed = said !== undefined && said.code !== STATUS.ok;
    this.reject(failed ? said : statusOfHttp(status, getHeader(headers, "content-type")));
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    if (this.#stage === "over") return;
    const invalid = this.#incoming.push(buffer, from, to);
    if (invalid !== undefined) this.reject(invalid);
  }

  onResponseBatch(): void {}

  /** The HTTP status is 200 for failures of gRPC too. */
  succeeded(trailers: HeaderList): boolean {
    return this.#incoming.statusOf(trailers).code === STATUS.ok;
  }

  onResponseEnd(trailers: HeaderList): void {
    if (this.#stage === "over") return;
    const status = this.#incoming.statusOf(trailers);
    this.#finish(status.code === STATUS.ok ? undefined : failed(status));
  }

  onCallFailure({ code, message, timedOut }: CallFailure): void {
    if (timedOut) this.#finish(failed({ code: STATUS.deadlineExceeded, message: "the deadline has passed" }));
    else {
      const status = this.#resetCode === undefined ? STATUS.unavailable : codeOfReset(this.#resetCode);
      this.#finish(new GatewayError(code, undefined, new GrpcStatusError({ code: status, message })));
    }
  }

  /** A defect of the gateway, such as a listener that throws. */
  onUpstreamFault(error: unknown): void {
    this.#finish(failed({ code: STATUS.internal, message: messageOf(error) }));
  }

  #received(message: Buffer): void {
    if (this.#stage === "over") return;
    if (this.#stage === "called") this.#call.markAnswered();
    this.#stage = "answered";
    this.#events.onMessage(message);
  }

  /** The one end of the call; everything after it is ignored. */
  #finish(error: GatewayError | undefined): void {
    const stage = this.#stage;
    if (stage === "over") return;
    this.#stage = "over";
    const reason = error?.cause instanceof Error ? error.cause.message : error?.message;
    if (stage !== "new") this.#observer?.ended(error === undefined ? 200 : null, reason ?? null);
    if (this.#incoming.incomplete && error?.cause instanceof GrpcStatusError) error.cause.unreadable = true;
    this.#events.onEnd(error);
  }
}

/** For the caller, a deadline that has passed at the service is the same as one that has passed here. */
function failed(status: GrpcStatus): GatewayError {
  const late = status.code === STATUS.deadlineExceeded;
  return new GatewayError(late ? "TG_UPSTREAM_TIMEOUT" : "TG_UPSTREAM_FAILED", undefined, new GrpcStatusError(status));
}
