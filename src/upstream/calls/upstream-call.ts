/**
 * The upstream room makes calls. A call chooses an endpoint (balancers/), takes a connection from its pool or opens one (pool.ts,
 * dialer.ts, h2/), carries one exchange over it (connection.ts, h2/stream.ts), and records the outcome (endpoint.ts, outlier.ts).
 *
 * In: the endpoints and settings of a backend, compiled once per configuration, and a caller with a request. Out: the events of one
 * response, or one failure. Exchanges of clients, callouts and mirrors (callout.ts), gRPC and TCP connections all use `UpstreamCall`;
 * callers use a connection only to send their request on it.
 */
import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import type { ResponseHead } from "../../http/h1/parse-head.ts";
import { mayBeRejected } from "../../http/loop.ts";
import type { HeaderList, HttpResponse, Latin1 } from "../../http/message/message.ts";
import { TUNNEL } from "../../http/stream.ts";
import type { Balancer } from "../balancers/balancer.ts";
import type { ConnectTimes } from "../connections/connect-attempt.ts";
import type { UpstreamConnection } from "../connections/connection.ts";
import type { Upstream, UpstreamEvents } from "../connections/upstream.ts";
import { rejectLater, type Wait } from "../connections/wait-queue.ts";
import type { Endpoint, WaitingCall } from "../endpoints/endpoint.ts";
import type { BackendCalls } from "../endpoints/endpoints.ts";
import { HeadTooLarge, type UpstreamSession } from "../h2/session.ts";
import type { UpstreamWaiter } from "../h2/session-pool.ts";
import type { UpstreamStream } from "../h2/stream.ts";
import { type CallOutcome, NO_RESPONSE, type OutcomeContext, type OutlierDetector, SUCCEEDED } from "./outlier.ts";

/**
 * How a request is sent. `grpc`: as HTTP/2, whatever version other requests to the backend use. `connect`: as extended CONNECT of
 * HTTP/2, on a session whose server has announced its settings, since `connectProtocol` is one of them. `raw`: bytes without HTTP, on
 * a connection that serves nothing else.
 */
export type CallProtocol = "http1" | "http2" | "grpc" | "connect" | "raw";

/** What all calls to one backend share; made when the configuration compiles. */
interface CallTarget {
  /** Counts sends; undefined if the count is not shown anywhere. */
  readonly calls: BackendCalls | undefined;
  /** Without it, a call fails by a 5xx status or without a response, and no endpoint is evicted. */
  readonly outliers: OutlierDetector | undefined;
}

/** The target of callouts: they are not counted, and there are no rules about the health of their service. */
export const CALLOUT: CallTarget = { calls: undefined, outliers: undefined };

/** Why a call has no response, or no complete one. */
export interface CallFailure {
  readonly code: ErrorCode;
  /** For the log: completes the text of `code` in the table of errors. */
  readonly message: string;
  /** An upstream has received at least a part of the request, and may be processing it. */
  readonly sent: boolean;
  /** Some bytes of a response had arrived. */
  readonly answered: boolean;
  /** The timeout of `start` has passed. */
  readonly timedOut: boolean;
}

/**
 * Makes a call and receives its response. The call invokes `chooseEndpoint`, `prepare`, `onConnection` or `onSession`, then the events of
 * the response. After `onSendFailed` it starts over, for a replay or at another endpoint. `onResponseEnd`, `onCallFailure` and
 * `onUpstreamFault` are final, and nothing follows once the caller has invoked `settle`, `discard`, `timeOut` or `abandon`.
 */
export interface UpstreamCaller extends Omit<UpstreamEvents, "onUpstreamFailure"> {
  readonly method: string;
  /** The whole request is still in memory, so it can be sent again. */
  readonly replayable: boolean;
  /** Nothing is left to send. Until then a timeout may be due to a slow client, so it does not count as a failure. */
  readonly requestSent: boolean;
  /** CDN-Loop of the call (http/loop.ts); undefined if it belongs to no request. */
  readonly loop: Latin1 | undefined;
  /** undefined: there is at most one endpoint. */
  readonly balancer: Balancer | undefined;
  /** Endpoints without a connection for this request so far; the call adds to them. */
  failed: Set<Endpoint> | undefined;
  /** One of `failed` only if there is no other; undefined = the backend has no endpoint to choose. May throw a GatewayError. */
  chooseEndpoint(): Endpoint | undefined;
  /** Adapts the request to the endpoint that is called next, and returns how it is sent. May throw a GatewayError. */
  prepare(endpoint: Endpoint): CallProtocol;
  /**
   * Sends the request by `sendHead`; its body may be sent at once or later. If `prepare` returned `raw`, the tunnel is open.
   * Also invoked after `http2` and `grpc` if the server has negotiated HTTP/1.1.
   */
  onConnection(connection: UpstreamConnection, call: UpstreamCall): void;
  /** Sends the request by `openStream` before it returns. Needed only if `prepare` returns `http2`, `grpc` or `connect`. */
  onSession?(session: UpstreamSession, call: UpstreamCall): void;
  /** A send has failed before its response was complete. `times` is given if it never had a connection. */
  onSendFailed?(code: ErrorCode, message: string, times: ConnectTimes | undefined): void;
  /**
   * Whether a complete response with a status below 500 counts as a success, if the target has no outlier detection. Default: it does.
   * gRPC reports the result of a call at its end.
   */
  succeeded?(trailers: HeaderList): boolean;
  /** The outcome of this call has evicted the endpoint. */
  onEvicted?(endpoint: Endpoint): void;
  onCallFailure(failure: CallFailure): void;
}

/** Methods whose requests have the same effect if they are repeated (RFC 9110 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
/** After this many sends a call fails: every connection of a pool may be stale, and every server may be shutting down. */
const MAX_SENDS = 3;
/**
 * Maximum number of endpoints at which a call tries to get a connection: most endpoints of a backend may disappear at once, but a backend
 * without any live endpoint must not turn each request into one connection attempt per endpoint.
 */
const MAX_ENDPOINTS = 5;

export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.has(method);
}

/**
 * `idle`: nothing is under way: before the first send, between two, and after the end. `waiting`: for a connection to the endpoint.
 * `sent`: on a connection or stream. `tunnel`: the same, and both directions carry bytes.
 */
type CallState = "idle" | "waiting" | "sent" | "tunnel";

/**
 * One call to an upstream: chooses the endpoint, gets a connection, tries another endpoint if it gets none, replays the request if a stale
 * connection lost it, enforces the timeout, and reports the outcome to the endpoint, exactly once for each send. An instance serves one
 * call.
 *
 * Without a connection nothing was sent, so any request may go to another endpoint of its backend. Replays need no `retry` policy,
 * because the upstream did not process the request (RFC 9110 9.2.2, RFC 9113 8.7): any method if the upstream has said so, idempotent
 * methods if a pooled connection closed before the response, which happens when the request crosses the end of an idle timeout.
 */
export class UpstreamCall implements UpstreamWaiter, UpstreamEvents, WaitingCall {
  /** The connection or stream that carries the request; undefined before there is one and after the response is complete. */
  upstream: Upstream | undefined;
  /** `performance.now()` ms of the last send; 0 = none yet. */
  sentAt = 0;
  /** Backoff of the retry policy in milliseconds, 0 = none: the length of an eviction if nothing else determines it. */
  retryBackoff = 0;
  readonly #caller: UpstreamCaller;
  readonly #target: CallTarget;
  #state: CallState = "idle";
  /** The endpoint of the current send; undefined while idle. */
  #endpoint: Endpoint | undefined;
  #protocol: CallProtocol = "http1";
  /** Requests sent on a connection, plus endpoints given up without one. */
  #sends = 0;
  #left = 0;
  /** Seconds until a raw connection was open, or until `markAnswered`: the whole duration would say nothing about the endpoint. */
  #secondsToAnswer = 0;
  /** Of a complete response; a tunnel without a response has succeeded. */
  #outcome = SUCCEEDED;
  /** Set if the rules of the backend have classified the response. */
  #outcomeContext: OutcomeContext | undefined;
  /** Set while the call waits for a connection. */
  #wait: Wait | undefined;
  /** Ends the wait for a connection if there is another endpoint to go to. */
  #patience: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timeoutCovers: "head" | "response" = "head";

  constructor(caller: UpstreamCaller, target: CallTarget) {
    this.#caller = caller;
    this.#target = target;
  }

  /** The endpoint of the current send. */
  get endpoint(): Endpoint | undefined {
    return this.#endpoint;
  }

  /**
   * Sends the request. `timeoutMs` (0 = none) covers connecting, sending, replays, and the response up to its head or its end.
   * False: there is no endpoint to choose. Throws what `chooseEndpoint` and `prepare` throw; then nothing has begun.
   */
  start(timeoutMs = 0, covers: "head" | "response" = "head"): boolean {
    this.#timeoutCovers = covers;
    if (!this.#send(false)) return false;
    // On a connection that is open, the send may have failed already.
    if (timeoutMs > 0 && this.#state !== "idle") this.#timer = setTimeout(() => this.expire(), timeoutMs);
    return true;
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

  /** Takes the time until now as the latency of the endpoint: how long the rest takes depends on both sides. */
  markAnswered(): void {
    this.#secondsToAnswer ||= (performance.now() - this.sentAt) / 1000;
  }

  // ── the caller ends the call ──

  /** The tunnel has ended in both directions. The connection is not destroyed: bytes that were written may still be on their way. */
  settle(): void {
    this.upstream = undefined;
    this.#stopTimer();
    this.#record(this.#outcome);
  }

  /** The caller needs no more of the response; its head determines the outcome. */
  discard(): void {
    this.#drop();
    this.#record(this.#outcome);
  }

  /**
   * A deadline of the caller has passed. It counts as a failure unless the upstream is still waiting for the body of a slow
   * client, the call for room in a full pool, or the gateway for the upstream's SETTINGS, having guessed that it speaks HTTP/2.
   */
  timeOut(): void {
    const blameless = this.#wait === undefined ? !this.#caller.requestSent : !this.#waitsForServer(this.#wait);
    this.abandon({ countFailure: !blameless });
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

  get loop(): Latin1 | undefined {
    return this.#caller.loop;
  }

  // ── getting a connection ──

  /** `fresh`: on a new connection, because a pooled one was stale. */
  #send(fresh: boolean): boolean {
    const caller = this.#caller;
    let endpoint = caller.chooseEndpoint();
    if (endpoint === undefined) return false;
    let full = !endpoint.begin();
    // Between the choice and `begin`, another worker has taken the last place.
    while (full && caller.balancer?.hasOther(endpoint, caller.failed) === true) {
      endpoint.takeBack();
      endpoint = caller.chooseEndpoint();
      if (endpoint === undefined) return false;
      full = !endpoint.begin();
    }
    const protocol = this.#prepare(endpoint);
    this.#protocol = protocol;
    this.#endpoint = endpoint;
    this.#state = "waiting";
    const { calls } = this.#target;
    if (calls !== undefined) calls.total++;
    this.sentAt = performance.now();
    const { pool } = endpoint;
    // A raw call needs a new connection: an idle one has carried HTTP.
    let wait: Wait | undefined;
    if (full) wait = this.#rejectCall(endpoint);
    else if (protocol === "raw") wait = pool.connect(this, true);
    else if (protocol === "grpc") wait = pool.acquireSession(this);
    else wait = pool.acquire(protocol !== "http1", fresh, this);
    // Not overwritten with undefined: the send may have failed already, and this may be the wait of its replay.
    if (wait !== undefined) this.#beginWait(endpoint, wait);
    return true;
  }

  #prepare(endpoint: Endpoint): CallProtocol {
    try {
      return this.#caller.prepare(endpoint);
    } catch (error) {
      endpoint.takeBack();
      throw error;
    }
  }

  #beginWait(endpoint: Endpoint, wait: Wait): void {
    this.#wait = wait;
    endpoint.wait(this);
    const { balancer, failed } = this.#caller;
    const { patience } = endpoint.pool;
    if (patience === 0 || balancer?.hasOther(endpoint, failed) !== true) return;
    this.#patience = setTimeout(() => {
      this.#patience = undefined;
      // If the pool is full, the call keeps its place in the queue.
      if (this.#waitsForServer(wait)) this.#leave(NO_RESPONSE, `no connection within ${patience} ms`);
    }, patience);
  }

  #stopWaiting(): void {
    if (this.#wait === undefined) return;
    this.#wait = undefined;
    this.#endpoint?.stopWaiting(this);
    clearTimeout(this.#patience);
    this.#patience = undefined;
  }

  onEndpointRemoved(): void {
    this.#leave(undefined, "the endpoint was removed");
  }

  /** Stops waiting for a connection if there is another endpoint to go to. `outcome`: of the one that it leaves. */
  #leave(outcome: CallOutcome | undefined, why: string): void {
    const endpoint = this.#endpoint;
    if (endpoint === undefined || !this.#mayGoOn(endpoint)) return;
    this.#wait?.cancel();
    this.#stopWaiting();
    this.#caller.onSendFailed?.("TG_UPSTREAM_FAILED", why, { connect: performance.now() - this.sentAt });
    this.#record(outcome);
    if (!this.#goOn(endpoint)) this.#failUnsent("TG_UPSTREAM_FAILED", why);
  }

  #mayGoOn(from: Endpoint): boolean {
    const { balancer, failed } = this.#caller;
    if (balancer === undefined || this.#left + 1 >= MAX_ENDPOINTS) return false;
    return balancer.endpoints.some((endpoint) => endpoint !== from && failed?.has(endpoint) !== true);
  }

  /** Moves on from an endpoint without a connection to another one. False = there is no other, or the request cannot be sent there. */
  #goOn(from: Endpoint): boolean {
    if (!this.#mayGoOn(from)) return false;
    this.#left++;
    const caller = this.#caller;
    caller.failed ??= new Set();
    caller.failed.add(from);
    return this.#sendAgain(false);
  }

  /**
   * Whether the wait is the server's fault. It is not if the pool is full, or if the gateway waits to see whether the server speaks HTTP/2,
   * because the configuration does not say so.
   */
  #waitsForServer({ forRoom }: Wait): boolean {
    if (forRoom) return false;
    return this.#protocol === "http1" || this.#protocol === "raw" || this.#endpoint?.pool.guessing !== true;
  }

  #rejectCall(endpoint: Endpoint): Wait {
    endpoint.overflows++;
    return rejectLater(this, `${endpoint.maxRequests} requests are in progress`);
  }

  /** The server's SETTINGS say whether it supports extended CONNECT. */
  get needsSettings(): boolean {
    return this.#protocol === "connect";
  }

  onConnection(connection: UpstreamConnection): void {
    this.#beginSend();
    this.upstream = connection;
    if (this.#protocol === "raw") {
      this.#state = "tunnel";
      this.markAnswered();
      this.#stopTimer();
      connection.openTunnel(this);
    }
    this.#caller.onConnection(connection, this);
  }

  onSession(session: UpstreamSession): void {
    this.#beginSend();
    const caller = this.#caller;
    if (caller.onSession === undefined) throw new TypeError("a caller that asks for HTTP/2 needs onSession");
    try {
      caller.onSession(session, this);
    } catch (error) {
      if (!(error instanceof HeadTooLarge)) throw error;
      this.#failUnsent("TG_HEAD_TOO_LARGE", error.message);
    }
  }

  #beginSend(): void {
    this.#stopWaiting();
    this.#state = "sent";
    this.#sends++;
  }

  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes | undefined): void {
    this.#stopWaiting();
    this.#caller.onSendFailed?.(code, message, times ?? {});
    // A full pool says nothing about the endpoint, and its load must not move to others.
    const full = times === undefined;
    const endpoint = this.#endpoint;
    this.#record(full ? undefined : NO_RESPONSE);
    if (full || endpoint === undefined || !this.#goOn(endpoint)) this.#failUnsent(code, message);
  }

  #failUnsent(code: ErrorCode, message: string): void {
    this.abandon({ countFailure: false });
    this.#caller.onCallFailure({ code, message, sent: false, answered: false, timedOut: false });
  }

  /** The time that `start` allowed has passed. */
  expire(): void {
    const sent = this.#state !== "waiting";
    this.timeOut();
    this.#caller.onCallFailure({
      code: "TG_UPSTREAM_TIMEOUT",
      message: "no response in time",
      sent,
      answered: false,
      timedOut: true,
    });
  }

  // ── events of the upstream ──

  onInformational(head: ResponseHead): void {
    this.#caller.onInformational(head);
  }

  onResponse(head: ResponseHead, length: number): void {
    if (length === TUNNEL) this.#state = "tunnel";
    // Unless the rules of the backend classify it, the status decides.
    if (head.status >= 500) this.#outcome = NO_RESPONSE;
    if (this.#timeoutCovers === "head") this.#stopTimer();
    this.#caller.onResponse(head, length);
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    this.#caller.onResponseBody(buffer, from, to);
  }

  onResponseBatch(): void {
    this.#caller.onResponseBatch();
  }

  /** Records the outcome before it invokes the caller, whose next call may go to the same endpoint. */
  onResponseEnd(trailers: HeaderList): void {
    const { outliers } = this.#target;
    if (outliers === undefined) {
      if (this.#caller.succeeded?.(trailers) === false) this.#outcome = NO_RESPONSE;
    } else if (this.#outcomeContext !== undefined)
      outliers.classifyTrailers(this.#outcomeContext, this.#outcome, trailers);
    // The other direction of a tunnel stays open until the caller ends it.
    if (this.#state !== "tunnel") this.settle();
    this.#caller.onResponseEnd(trailers);
  }

  onTunnelClosed(): void {
    if (this.#state === "idle") return;
    this.settle();
    this.#caller.onTunnelClosed?.();
  }

  onUpstreamDrain(): void {
    this.#caller.onUpstreamDrain();
  }

  onUpstreamFailure(message: string, answered: boolean): void {
    // The connection of a tunnel may break after the tunnel has ended.
    if (this.#state === "idle") return;
    const { upstream } = this;
    this.upstream = undefined;
    this.#caller.onSendFailed?.("TG_UPSTREAM_FAILED", message, undefined);
    if (upstream !== undefined && !answered && this.#mayReplay(upstream)) {
      // An idle connection that closed says nothing about the endpoint.
      this.#record(undefined);
      if (this.#sendAgain(true)) return;
    }
    this.abandon({ countFailure: true });
    this.#caller.onCallFailure({
      code: "TG_UPSTREAM_FAILED",
      message,
      sent: upstream?.refused !== true,
      answered,
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

  /** False = the request cannot be sent again, and the call ends with the failure of the last send. */
  #sendAgain(fresh: boolean): boolean {
    try {
      return this.#send(fresh);
    } catch (error) {
      if (error instanceof GatewayError) return false;
      this.onUpstreamFault(error);
      return true;
    }
  }

  // ── accounting ──

  /** Reports the outcome of the send to the endpoint, once; undefined = it says nothing about the endpoint. */
  #record(outcome: CallOutcome | undefined): void {
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return;
    this.#endpoint = undefined;
    this.#state = "idle";
    if (outcome === undefined || (!outcome.healthy && this.#mayBeRejected())) {
      endpoint.abandon();
      return;
    }
    const seconds = this.#secondsToAnswer || (performance.now() - this.sentAt) / 1000;
    const { outliers } = this.#target;
    if (outliers === undefined) endpoint.end(outcome.healthy, seconds);
    else if (outliers.record(endpoint, outcome, seconds, this.retryBackoff)) this.#caller.onEvicted?.(endpoint);
  }

  /** A client that claims many hops can make another gateway, at the endpoint or on the way, reject any call. */
  #mayBeRejected(): boolean {
    const { loop } = this.#caller;
    return loop !== undefined && mayBeRejected(loop);
  }

  #drop(): void {
    this.#stopTimer();
    this.#wait?.cancel();
    this.#stopWaiting();
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
