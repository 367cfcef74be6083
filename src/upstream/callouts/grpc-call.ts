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
import { frame, MessageReader } from "../grpc/messages.ts";
import { requestMetadata } from "../grpc/metadata.ts";
import { codeOfReset, type GrpcStatus, GrpcStatusError, STATUS, statusIn, statusOfHttp } from "../grpc/status.ts";
import type { UpstreamSession } from "../h2/session.ts";
import type { UpstreamStream } from "../h2/stream.ts";
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
  readonly #replayBytes: number;
  readonly #reader = new MessageReader((message) => this.#received(message));
  readonly #startedAt = performance.now();
  #authority = "";
  #metadata: HeaderList = [];
  #scheme: "http" | "https" = "http";
  #stream: UpstreamStream | undefined;
  /** The error code by which the last stream was reset. */
  #resetCode: number | undefined;
  /** Everything written so far, for a call that has no stream yet or may be replayed; undefined = too much to keep. */
  #kept: Buffer[] | undefined = [];
  #keptBytes = 0;
  /** The caller has no more messages: END_STREAM follows the last one. */
  #halfClosed = false;
  /** `write` has returned false. */
  #blocked = false;
  /** The call was reported to the observer. */
  #reported = false;
  #closed = false;
  /** Contains the status if a response consists of its head alone ("Trailers-Only"). */
  #responseHead: HeaderList = [];
  /** A message has arrived. */
  #answered = false;
  #paused = false;
  /** Messages that arrived in the same read after the caller paused. */
  readonly #held: Buffer[] = [];
  /** The end of the call, held for a caller that has paused. */
  #end: GrpcStatus | undefined;

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
    this.#replayBytes = replayBytes;
  }

  /** Begins the call. Does not throw: failures are reported by `onEnd`. */
  start(): void {
    if (this.#closed) return;
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
    if (this.#closed) return true;
    const bytes = frame(message);
    this.#kept?.push(bytes);
    this.#keptBytes += bytes.length;
    // Without a stream, `write` returns false, so messages wait in the caller, not here.
    const sent = this.#stream?.sendBody(bytes, 0, bytes.length) ?? false;
    if (this.#stream !== undefined) this.#limitKept();
    this.#blocked = !sent;
    return sent;
  }

  end(): void {
    this.#halfClosed = true;
    this.#stream?.sendEnd([]);
  }

  /** After a message, the endpoint has worked; before that, a cancelled call says nothing about it. */
  cancel(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#answered) this.#call.discard();
    else this.#call.abandon({ countFailure: false });
  }

  pause(): void {
    this.#paused = true;
    this.#stream?.pause();
  }

  resume(): void {
    this.#paused = false;
    while (!this.#paused && !this.#closed) {
      const message = this.#held.shift();
      if (message === undefined) break;
      this.#events.onMessage(message);
    }
    if (this.#paused || this.#closed) return;
    if (this.#end !== undefined) this.#finishWith(this.#end);
    else this.#stream?.resume();
  }

  /** The service broke the protocol or a limit: the stream is reset. */
  reject(status: GrpcStatus): void {
    if (this.#closed) return;
    this.#call.abandon({ countFailure: true });
    this.#finish(failed(status));
  }

  // ── getting a stream ──

  /** Read after each failed send. */
  get replayable(): boolean {
    return this.#kept !== undefined;
  }

  get requestSent(): boolean {
    return this.#halfClosed;
  }

  get loop(): Latin1 | undefined {
    return this.#request.loop;
  }

  chooseEndpoint(): Endpoint | undefined {
    return this.balancer.choose(undefined, this.failed);
  }

  /** A replay is part of the same call: it is reported once. */
  prepare({ pool }: Endpoint): CallProtocol {
    if (!this.#reported) this.#observer?.started(pool.name);
    this.#reported = true;
    const { head, timeoutMs } = this.#request;
    // The service gets about what is left of the deadline when the request is sent.
    const left = timeoutMs === 0 ? 0 : Math.max(1, timeoutMs - (performance.now() - this.#startedAt));
    this.#metadata = requestMetadata(head.headers, left);
    this.#authority = head.authority || ("path" in pool.target ? "localhost" : pool.name);
    this.#scheme = pool.target.tls === undefined ? "http" : "https";
    return "grpc";
  }

  onSession(session: UpstreamSession, call: UpstreamCall): void {
    const head = { method: this.method, authority: this.#authority, path: this.#request.method, search: "" };
    const start = requestStart(head, this.#scheme, true, this.#request.loop ?? FIRST_HOP);
    const stream = call.openStream(session, start, endToEnd(this.#metadata), UNKNOWN_LENGTH);
    this.#stream = stream;
    let takesMore = true;
    // Everything written so far: what waited for the stream, and what a replay has to repeat.
    for (const bytes of this.#kept ?? []) takesMore = stream.sendBody(bytes, 0, bytes.length);
    this.#limitKept();
    if (this.#halfClosed) stream.sendEnd([]);
    if (this.#paused) stream.pause();
    if (takesMore) this.onUpstreamDrain();
  }

  /** Only where TLS offers HTTP/1.1 too, as `backendTLS.alpn` may. */
  onConnection(): void {
    this.reject({
      code: STATUS.unavailable,
      message: "the server has agreed to HTTP/1.1 only, which cannot carry gRPC",
    });
  }

  /** A replay gets another stream; what is written until then is kept. */
  onSendFailed(): void {
    this.#resetCode = this.#stream?.resetByPeer;
    this.#stream = undefined;
  }

  /** Also invoked when a stream has been opened and takes more. */
  onUpstreamDrain(): void {
    if (!this.#blocked || this.#closed) return;
    this.#blocked = false;
    this.#events.onDrain();
  }

  #limitKept(): void {
    if (this.#keptBytes > this.#replayBytes) this.#kept = undefined;
  }

  // ── response side ──

  onInformational(): void {}

  onResponse({ status, headers }: ResponseHead): void {
    // A call with a response is not replayed.
    this.#kept = undefined;
    this.#responseHead = headers;
    this.#reader.encoding = getHeader(headers, "grpc-encoding");
    if (status === 200 && isGrpc(headers)) return;
    // A service or proxy that rejects a call may give the reason in a gRPC status, but cannot claim that the call succeeded.
    const said = statusIn(headers);
    const failed = said !== undefined && said.code !== STATUS.ok;
    this.reject(failed ? said : statusOfHttp(status, getHeader(headers, "content-type")));
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    if (this.#closed) return;
    const invalid = this.#reader.push(buffer, from, to);
    if (invalid !== undefined) this.reject(invalid);
  }

  onResponseBatch(): void {}

  /** The HTTP status is 200 for failures of gRPC too. */
  succeeded(trailers: HeaderList): boolean {
    return this.#statusOf(trailers).code === STATUS.ok;
  }

  onResponseEnd(trailers: HeaderList): void {
    if (this.#closed) return;
    const status = this.#statusOf(trailers);
    if (this.#held.length > 0) this.#end = status;
    else this.#finishWith(status);
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
    if (this.#closed) return;
    if (!this.#answered) this.#call.markAnswered();
    this.#answered = true;
    if (this.#paused) this.#held.push(message);
    else this.#events.onMessage(message);
  }

  /** The status is in the trailers, or in the head of a response without messages. */
  #statusOf(trailers: HeaderList): GrpcStatus {
    const inHead = statusIn(this.#responseHead);
    // Trailers cannot undo a failure in the head.
    const status = inHead !== undefined && inHead.code !== STATUS.ok ? inHead : (statusIn(trailers) ?? inHead);
    if (status === undefined)
      return { code: STATUS.unknown, message: "the service has ended the call without a status" };
    if (status.code !== STATUS.ok || !this.#reader.incomplete) return status;
    return { code: STATUS.internal, message: "the service has ended the call within a message" };
  }

  #finishWith(status: GrpcStatus): void {
    this.#finish(status.code === STATUS.ok ? undefined : failed(status));
  }

  /** The one end of the call; everything after it is ignored. */
  #finish(error: GatewayError | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    const reason = error?.cause instanceof Error ? error.cause.message : error?.message;
    if (this.#reported) this.#observer?.ended(error === undefined ? 200 : null, reason ?? null);
    if (this.#reader.incomplete && error?.cause instanceof GrpcStatusError) error.cause.unreadable = true;
    this.#events.onEnd(error);
  }
}

/** For the caller, a deadline that has passed at the service is the same as one that has passed here. */
function failed(status: GrpcStatus): GatewayError {
  const late = status.code === STATUS.deadlineExceeded;
  return new GatewayError(late ? "TG_UPSTREAM_TIMEOUT" : "TG_UPSTREAM_FAILED", undefined, new GrpcStatusError(status));
}
