/**
 * The upstream room makes calls: it chooses an endpoint (balancer.ts), takes a connection to it from its pool or opens one
 * (pool.ts, dialer.ts, h2/), carries one exchange over that (connection.ts, h2/stream.ts), and learns from how it went
 * (endpoint.ts, outlier.ts).
 *
 * In come the endpoints and settings of a backend, compiled once per configuration, and a caller with a request. Out come the
 * events of one response, or one failure. The exchanges of clients, the calls of policies and mirrors (callout.ts), gRPC and
 * TCP connections all use `UpstreamCall`; the rooms above see connections only to send on them what is theirs to send.
 */
import { type ErrorCode, GatewayError } from "../base/errors.ts";
import type { ResponseHead } from "../http/h1/parse-head.ts";
import type { HeaderList, HttpResponse } from "../http/message.ts";
import { TUNNEL } from "../http/stream.ts";
import type { Addresses } from "../net/addresses.ts";
import type { ConnectTimes } from "./connect-attempt.ts";
import type { UpstreamConnection } from "./connection.ts";
import { isLoop, LOOP_DETECTED } from "./dynamic.ts";
import type { Endpoint } from "./endpoint.ts";
import type { BackendCalls } from "./endpoints.ts";
import { HeadTooLarge, type UpstreamSession } from "./h2/session.ts";
import type { UpstreamWaiter } from "./h2/session-pool.ts";
import type { UpstreamStream } from "./h2/stream.ts";
import { type CallOutcome, NO_RESPONSE, type OutcomeContext, type OutlierDetector, SUCCEEDED } from "./outlier.ts";
import type { Upstream, UpstreamEvents } from "./upstream.ts";

/**
 * How a request goes out. `grpc`: as HTTP/2 whatever version the backend's requests have otherwise. `connect`: as extended
 * CONNECT of HTTP/2, on a session that has `connectProtocol`, if the server takes it. `raw`: bytes without HTTP, on a connection
 * that serves nothing else.
 */
export type CallProtocol = "http1" | "http2" | "grpc" | "connect" | "raw";

/** What all calls to one backend have in common; made when the configuration compiles. */
export interface CallTarget {
  /** Counts what is sent; undefined where nothing shows the count. */
  readonly calls: BackendCalls | undefined;
  /** Without it a call has failed when its status is 5xx or it has no response, and no endpoint is evicted. */
  readonly outliers: OutlierDetector | undefined;
}

/** Why a call has no response, or no complete one. */
export interface CallFailure {
  readonly code: ErrorCode;
  /** Completes the text that `code` has in the table of errors. */
  readonly message: string;
  /** An upstream has got the request or a part of it, and may be working on it. */
  readonly sent: boolean;
  /** The timeout of `start` has passed. */
  readonly timedOut: boolean;
}

/**
 * Makes a call and receives its response. The call invokes `chooseEndpoint`, `prepare`, `onConnection` or `onSession`, then the
 * events of the response. A replay begins anew after `onSendFailed`. `onResponseEnd`, `onCallFailure` and `onUpstreamFault` are
 * final, and nothing follows once the caller has invoked `settle`, `discard`, `timeOut` or `abandon`.
 */
export interface UpstreamCaller extends Omit<UpstreamEvents, "onUpstreamFailure"> {
  readonly method: string;
  /** The whole request is at hand, so that it can be sent again. */
  readonly replayable: boolean;
  /** Nothing is left to send. Until then a timeout may be due to a slow client, so it does not count as a failure. */
  readonly requestSent: boolean;
  /** Where the client connected to, when the client names the target: a call to the same address would loop. */
  readonly loopGuard?: Pick<Addresses, "localAddress" | "localPort"> | undefined;
  /** undefined = the backend has no endpoint to choose. May throw a GatewayError. */
  chooseEndpoint(): Endpoint | undefined;
  /** Adapts the request to the endpoint that is called next, and says how it goes out. May throw a GatewayError. */
  prepare(endpoint: Endpoint): CallProtocol;
  /**
   * Sends the request by `sendHead`; what follows the head may go out at once or later. Where `prepare` said `raw` the tunnel
   * is open. Also invoked after `http2` and `grpc` when the server has agreed to HTTP/1.1 only.
   */
  onConnection(connection: UpstreamConnection, call: UpstreamCall): void;
  /** Sends the request by `openStream`, before it returns. Needed only where `prepare` says `http2`, `grpc` or `connect`. */
  onSession?(session: UpstreamSession, call: UpstreamCall): void;
  /** A send has failed before its response was complete. `times`: if it never had a connection. */
  onSendFailed?(message: string, times: ConnectTimes | undefined): void;
  /**
   * Whether a complete response counts as a success where the target has no outlier detection; without this method by a status
   * below 500. gRPC says at the end how a call went.
   */
  succeeded?(trailers: HeaderList): boolean;
  /** The outcome of this call has evicted the endpoint. */
  onEvicted?(endpoint: Endpoint): void;
  onCallFailure(failure: CallFailure): void;
}

/** Methods whose requests have the same effect once or several times (RFC 9110 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
/** Every connection of a pool may be stale, and every server about to go away: after this many sends the call fails. */
const MAX_SENDS = 3;

export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.has(method);
}

/**
 * One call to an upstream: chooses the endpoint, gets a connection, replays the request if a stale connection lost it, keeps
 * the timeout, and tells the endpoint how the call went, exactly once for each send. Used for one call and thrown away.
 *
 * Replays need no `retry` policy, because the upstream did not process the request (RFC 9110 9.2.2, RFC 9113 8.7): any method
 * when the upstream has said so, idempotent methods when a pooled connection closed before it answered, which happens when the
 * request crosses the end of an idle timeout.
 */
export class UpstreamCall implements UpstreamWaiter, UpstreamEvents {
  /** The connection or stream that the request is on; undefined before that, and when the response is complete. */
  upstream: Upstream | undefined;
  /** `performance.now()` ms of the last send; 0 = none yet. */
  sentAt = 0;
  /** Milliseconds of the retry policy; an eviction lasts that long if nothing else gives its length. 0 = none. */
  retryBackoff = 0;
  readonly #caller: UpstreamCaller;
  readonly #target: CallTarget;
  /** The endpoint of the send that is under way: it has to learn the outcome. */
  #endpoint: Endpoint | undefined;
  #protocol: CallProtocol = "http1";
  #sends = 0;
  /** Of the response; 0 = none yet. */
  #status = 0;
  #tunnel = false;
  /** Seconds until a raw connection was there or `markAnswered`; the whole duration would say nothing about the endpoint. */
  #secondsToAnswer = 0;
  #outcome: CallOutcome | undefined;
  #outcomeContext: OutcomeContext | undefined;
  /** Cancels the wait for a connection. */
  #cancelWait: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timeoutMs = 0;
  #timeoutCovers: "head" | "response" = "head";

  constructor(caller: UpstreamCaller, target: CallTarget) {
    this.#caller = caller;
    this.#target = target;
  }

  /** The endpoint of the send that is under way. */
  get endpoint(): Endpoint | undefined {
    return this.#endpoint;
  }

  /**
   * Sends the request. `timeoutMs` (0 = none) covers connecting, sending, replays, and the response to its head or to its end.
   * False: there is no endpoint to choose. Throws what `chooseEndpoint` and `prepare` throw; then nothing has begun.
   */
  start(timeoutMs = 0, covers: "head" | "response" = "head"): boolean {
    this.#timeoutMs = timeoutMs;
    this.#timeoutCovers = covers;
    return this.#send(false);
  }

  /** Sends the head of a request of `length` body bytes (0, a number, or UNKNOWN_LENGTH) on the connection. */
  sendHead(connection: UpstreamConnection, headText: string, length: number, preserveCase: boolean): void {
    connection.send(headText, this.#caller.method, length, preserveCase, this);
  }

  /**
   * Opens a stream with the head of a request of `length` body bytes, or TUNNEL for an extended CONNECT: `start` has the
   * pseudo-header fields.
   */
  openStream(
    session: UpstreamSession,
    start: readonly string[],
    headers: readonly string[],
    length: number,
  ): UpstreamStream {
    const method = length === TUNNEL ? "CONNECT" : this.#caller.method;
    const stream = session.send(start, headers, method, length, this);
    this.upstream = stream;
    return stream;
  }

  /** The latency of the endpoint is the time until now: how long the rest takes is up to both sides. */
  markAnswered(): void {
    this.#secondsToAnswer ||= (performance.now() - this.sentAt) / 1000;
  }

  // ── ends of the caller's making ──

  /** The tunnel of the call has ended in both directions. What was written may still be on its way, so nothing is cut off. */
  settle(): void {
    this.upstream = undefined;
    this.#stopTimer();
    this.#record(this.#classified());
  }

  /** The caller needs no more of the response; the outcome is that of its head. */
  discard(): void {
    this.#drop();
    this.#record(this.#classified());
  }

  /**
   * A deadline of the caller has passed. That counts as a failure unless the upstream still waits for the body of a slow
   * client.
   */
  timeOut(): void {
    this.abandon({ countFailure: this.upstream === undefined || this.#caller.requestSent });
  }

  /** Ends the call without a usable response. `countFailure`: because of the endpoint, not of the client or the gateway. */
  abandon({ countFailure }: { readonly countFailure: boolean }): void {
    this.#drop();
    this.#record(countFailure ? NO_RESPONSE : undefined);
  }

  /** Classifies the response by the rules of the backend. Policies may change the response afterwards. */
  classify(context: OutcomeContext, response: HttpResponse): void {
    const { outliers } = this.#target;
    if (outliers === undefined) return;
    this.#outcomeContext = context;
    this.#outcome = outliers.classify(context, response);
  }

  // ── getting a connection ──

  /** `fresh`: on a new connection, because a pooled one proved to be stale. */
  #send(fresh: boolean): boolean {
    const caller = this.#caller;
    const endpoint = caller.chooseEndpoint();
    if (endpoint === undefined) return false;
    const protocol = caller.prepare(endpoint);
    this.#protocol = protocol;
    this.#endpoint = endpoint;
    this.#sends++;
    const full = endpoint.pending >= endpoint.maxRequests;
    endpoint.begin();
    const { calls } = this.#target;
    if (calls !== undefined) calls.total++;
    if (this.#timeoutMs > 0) this.#timer ??= setTimeout(() => this.#expire(), this.#timeoutMs);
    this.sentAt = performance.now();
    const { pool } = endpoint;
    // A tunnel ends with its connection, so an idle one gains nothing.
    let cancel: (() => void) | undefined;
    if (full) cancel = this.#turnAway(endpoint);
    else if (protocol === "raw") cancel = pool.connect(this, true);
    else if (protocol === "grpc") cancel = pool.acquireSession(this);
    else cancel = pool.acquire(protocol !== "http1", fresh, this);
    // Without a wait the request may have failed by now, and a replay may wait.
    if (cancel !== undefined) this.#cancelWait = cancel;
    return true;
  }

  /** Fails the call once `start` has returned, as a full queue of the pool does. Returns a function that cancels that. */
  #turnAway(endpoint: Endpoint): () => void {
    endpoint.overflows++;
    let cancelled = false;
    queueMicrotask(() => {
      if (!cancelled) this.onConnectFailure("TG_POOL_FULL", `${endpoint.maxRequests} requests are in progress`, {});
    });
    return () => {
      cancelled = true;
    };
  }

  /** What a server takes besides requests is in its SETTINGS. */
  get needsSettings(): boolean {
    return this.#protocol === "connect";
  }

  onConnection(connection: UpstreamConnection): void {
    this.#cancelWait = undefined;
    const { loopGuard } = this.#caller;
    if (loopGuard !== undefined && isLoop(loopGuard, connection)) {
      connection.destroy();
      this.onConnectFailure("TG_UPSTREAM_FAILED", LOOP_DETECTED, connection.times);
      return;
    }
    this.upstream = connection;
    if (this.#protocol === "raw") {
      this.#tunnel = true;
      this.markAnswered();
      this.#stopTimer();
      connection.openTunnel(this);
    }
    this.#caller.onConnection(connection, this);
  }

  onSession(session: UpstreamSession): void {
    this.#cancelWait = undefined;
    const caller = this.#caller;
    if (caller.onSession === undefined) throw new TypeError("a caller that asks for HTTP/2 needs onSession");
    const { loopGuard } = caller;
    if (loopGuard !== undefined && isLoop(loopGuard, session)) {
      // Other requests may use the session: it is where it leads that is wrong for this one.
      this.onConnectFailure("TG_UPSTREAM_FAILED", LOOP_DETECTED, session.times);
      return;
    }
    try {
      caller.onSession(session, this);
    } catch (error) {
      if (!(error instanceof HeadTooLarge)) throw error;
      this.abandon({ countFailure: false });
      caller.onCallFailure({ code: "TG_HEAD_TOO_LARGE", message: error.message, sent: false, timedOut: false });
    }
  }

  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes): void {
    this.#cancelWait = undefined;
    this.#caller.onSendFailed?.(message, times);
    // That too many requests wait for a connection says nothing about the endpoint.
    this.abandon({ countFailure: code !== "TG_POOL_FULL" });
    this.#caller.onCallFailure({ code, message, sent: false, timedOut: false });
  }

  #expire(): void {
    const sent = this.upstream !== undefined;
    this.timeOut();
    this.#caller.onCallFailure({ code: "TG_UPSTREAM_TIMEOUT", message: "no answer in time", sent, timedOut: true });
  }

  // ── events of the upstream ──

  onInformational(head: ResponseHead): void {
    this.#caller.onInformational(head);
  }

  onResponse(head: ResponseHead, length: number): void {
    this.#status = head.status;
    this.#tunnel = length === TUNNEL;
    if (this.#timeoutCovers === "head") this.#stopTimer();
    this.#caller.onResponse(head, length);
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    this.#caller.onResponseBody(buffer, from, to);
  }

  onResponseBatch(): void {
    this.#caller.onResponseBatch();
  }

  /** The endpoint learns the outcome before the caller, whose next call may be to the same endpoint. */
  onResponseEnd(trailers: HeaderList): void {
    const context = this.#outcomeContext;
    const outcome = this.#outcome;
    if (context !== undefined && outcome !== undefined)
      this.#target.outliers?.classifyTrailers(context, outcome, trailers);
    const { outliers } = this.#target;
    if (outliers === undefined && this.#caller.succeeded !== undefined)
      this.#outcome = this.#caller.succeeded(trailers) ? SUCCEEDED : NO_RESPONSE;
    // The other direction of a tunnel goes on until the caller ends it.
    if (!this.#tunnel) this.settle();
    this.#caller.onResponseEnd(trailers);
  }

  onTunnelClosed(): void {
    if (this.#endpoint === undefined) return;
    this.settle();
    this.#caller.onTunnelClosed?.();
  }

  onUpstreamDrain(): void {
    this.#caller.onUpstreamDrain();
  }

  onUpstreamFailure(message: string, answered: boolean): void {
    // The connection of a tunnel may break after the tunnel has ended.
    if (this.#endpoint === undefined) return;
    const { upstream } = this;
    this.upstream = undefined;
    this.#caller.onSendFailed?.(message, undefined);
    if (upstream !== undefined && !answered && this.#mayReplay(upstream)) {
      // That a connection closed while it was idle says nothing about the endpoint.
      this.#record(undefined);
      if (this.#replay()) return;
    }
    this.abandon({ countFailure: true });
    this.#caller.onCallFailure({
      code: "TG_UPSTREAM_FAILED",
      message,
      sent: upstream?.refused !== true,
      timedOut: false,
    });
  }

  onUpstreamFault(error: unknown): void {
    this.abandon({ countFailure: false });
    this.#caller.onUpstreamFault(error);
  }

  #mayReplay({ refused, served }: Upstream): boolean {
    const { method, replayable } = this.#caller;
    if (!replayable || this.#sends >= MAX_SENDS) return false;
    return refused || (served > 0 && isIdempotent(method));
  }

  /** False = there is no way to; the failure stands that made a replay necessary. */
  #replay(): boolean {
    try {
      return this.#send(true);
    } catch (error) {
      if (error instanceof GatewayError) return false;
      this.onUpstreamFault(error);
      return true;
    }
  }

  // ── accounting ──

  /** A response without rules, and a tunnel without a response, are classified by the status alone. */
  #classified(): CallOutcome {
    return this.#outcome ?? (this.#status < 500 ? SUCCEEDED : NO_RESPONSE);
  }

  /** Tells the endpoint the outcome of the send; undefined = it says nothing about the endpoint. Once for each send. */
  #record(outcome: CallOutcome | undefined): void {
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return;
    this.#endpoint = undefined;
    if (outcome === undefined) {
      endpoint.abandon();
      return;
    }
    const seconds = this.#secondsToAnswer || (performance.now() - this.sentAt) / 1000;
    const { outliers } = this.#target;
    if (outliers === undefined) endpoint.end(outcome.healthy, seconds);
    else if (outliers.record(endpoint, outcome, seconds, this.retryBackoff)) this.#caller.onEvicted?.(endpoint);
  }

  #drop(): void {
    this.#stopTimer();
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    const { upstream } = this;
    this.upstream = undefined;
    upstream?.destroy();
  }

  #stopTimer(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
