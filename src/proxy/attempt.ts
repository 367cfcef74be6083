/**
 * The call to a backend: chooses an endpoint, gets a connection from its pool, sends the request and hands the response to the
 * exchange. What the attempt says about the endpoint goes to outlier detection, whichever way it ends.
 */
import { asError, ERRORS, type ErrorCode, GatewayError } from "../base/errors.ts";
import type { Activation } from "../cel/index.ts";
import { isGrpc } from "../http/grpc-reply.ts";
import { alignNames } from "../http/h1/names.ts";
import type { ResponseHead } from "../http/h1/parse-head.ts";
import { requestHeadText } from "../http/h1/serialize.ts";
import { requestFields } from "../http/h2/fields.ts";
import { type HeaderList, type HttpResponse, setHeader } from "../http/message.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../http/stream.ts";
import type { ConnectTimes } from "../upstream/connect-attempt.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { ViaProxy } from "../upstream/dialer.ts";
import { isLoop, LOOP_DETECTED } from "../upstream/dynamic.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import type { UpstreamSession } from "../upstream/h2/session.ts";
import type { UpstreamWaiter } from "../upstream/h2/session-pool.ts";
import { type CallOutcome, NO_RESPONSE, type OutcomeContext } from "../upstream/outlier.ts";
import type { Pool } from "../upstream/pool.ts";
import type { Http2Use } from "../upstream/pool-target.ts";
import { mayResend } from "../upstream/resend.ts";
import type { Upstream, UpstreamEvents } from "../upstream/upstream.ts";
import { isIdempotent } from "../upstream/upstream-call.ts";
import { chooseEndpoint, endpointName } from "./choose-endpoint.ts";
import type { CompiledBackend } from "./compiled.ts";
import { type BackendCall, type Exchange, WAIT } from "./exchange.ts";

/** Bytes of a request body that are kept for further attempts (reference 3.18). */
const REPLAY_BYTES = 64 * 1024;
const NO_HEADERS: HeaderList = [];

export function attempt(exchange: Exchange): typeof WAIT {
  exchange.call ??= new HttpCall(exchange);
  exchange.call.attempt();
  return WAIT;
}

class HttpCall implements BackendCall, UpstreamEvents, UpstreamWaiter, OutcomeContext {
  readonly #exchange: Exchange;
  readonly #backend: CompiledBackend;
  attempts = 0;
  endpointName: string | undefined;
  startedAt = 0;
  answeredAt = 0;
  upstream: Upstream | undefined;
  /** Of the attempt that is under way. */
  #endpoint: Endpoint | undefined;
  /** What the response says about the endpoint, where the backend has rules for that. */
  #outcome: CallOutcome | undefined;
  /** Gives up waiting for a connection. */
  #cancelConnect: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    this.#backend = exchange.selected.backend as CompiledBackend;
  }

  // What outlier detection reads, and sets while it evaluates its expression.

  get response(): HttpResponse | undefined {
    return this.#exchange.responseSide.head;
  }
  set response(response: HttpResponse | undefined) {
    this.#exchange.responseSide.head = response;
  }
  get trailers(): HeaderList {
    return this.#exchange.responseSide.trailers;
  }
  set trailers(trailers: HeaderList) {
    this.#exchange.responseSide.trailers = trailers;
  }
  get variables(): Activation {
    return this.#exchange.variables;
  }

  /** Throws TG_NO_HEALTHY_BACKENDS or TG_UPGRADE_MISMATCH; later failures are events. */
  attempt(): void {
    this.#attempt(false);
  }

  /** `fresh`: not on a pooled connection, which proved to be stale. */
  #attempt(fresh: boolean): void {
    const exchange = this.#exchange;
    const backend = this.#backend;
    const { request, downstream, trace } = exchange;
    const endpoint = chooseEndpoint(exchange, backend);
    if (endpoint === undefined) throw new GatewayError("TG_NO_HEALTHY_BACKENDS");
    const { pool } = endpoint;
    const http2 = pool.http2 !== "never" && wantsHttp2(exchange, pool.http2);
    if (http2 && !canIgnoreUpgrade(downstream.upgrade))
      throw new GatewayError(
        "TG_UPGRADE_MISMATCH",
        `${downstream.upgrade} was requested of a backend that speaks HTTP/2`,
      );
    this.attempts++;
    this.#endpoint = endpoint;
    this.endpointName = endpointName(backend, endpoint);
    endpoint.begin();
    backend.calls.total++;
    this.#startTimers();
    if (exchange.authorityMode === "auto") rewriteAuthority(exchange, pool);
    if (pool.viaProxy !== undefined && !http2) addressProxy(exchange, pool.viaProxy);
    exchange.span?.callStarted(request, this.endpointName);
    if (trace !== undefined) {
      trace.requestSnapshot("final request");
      trace.callStarted(this.endpointName);
    }
    this.startedAt = performance.now();
    // A tunnel ends with its connection, so an idle one gains nothing.
    const giveUp = request.method === "CONNECT" ? pool.connect(this, true) : pool.acquire(http2, fresh, this);
    if (giveUp !== undefined) this.#cancelConnect = giveUp;
  }

  // ── the connection ──

  onConnection(connection: UpstreamConnection): void {
    const exchange = this.#exchange;
    this.#cancelConnect = undefined;
    exchange.trace?.connected(connection);
    if (this.#backend.target.type === "dynamic" && isLoop(exchange.downstream.connection, connection)) {
      connection.destroy();
      this.onConnectFailure("TG_UPSTREAM_FAILED", LOOP_DETECTED, connection.times);
    } else if (exchange.request.method === "CONNECT") this.#openTunnel(connection);
    else this.#sendHttp1(connection);
  }

  onSession(session: UpstreamSession): void {
    this.#cancelConnect = undefined;
    this.#exchange.trace?.connected(session);
    this.#sendHttp2(session);
  }

  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes): void {
    const exchange = this.#exchange;
    this.#cancelConnect = undefined;
    if (exchange.closed) return;
    exchange.trace?.notConnected(times);
    this.#report(null, message);
    // That too many requests wait says nothing about the endpoint.
    this.abandon({ countFailure: code !== "TG_POOL_FULL" });
    exchange.attemptFailed(new GatewayError(code, message), message);
  }

  // ── the request ──

  #sendHttp1(connection: UpstreamConnection): void {
    const { request, downstream, requestSide, retry } = this.#exchange;
    if (retry !== undefined) requestSide.keep(REPLAY_BYTES);
    const { length } = requestSide;
    let extra = "";
    if (length === UNKNOWN_LENGTH) extra = "transfer-encoding: chunked\r\n";
    if (downstream.upgrade !== "") extra += `connection: upgrade\r\nupgrade: ${downstream.upgrade}\r\n`;
    else if (downstream.trailersAccepted) extra += "connection: te\r\nte: trailers\r\n";
    const preserve = downstream.rawNames !== null;
    const names = downstream.rawNames === null ? null : alignNames(request.headers, downstream.rawNames);
    let path = request.path + request.search;
    const via = this.#endpoint?.pool.viaProxy;
    // The server as a whole has no path: `OPTIONS *` (RFC 9112 3.2.4).
    if (via !== undefined) path = via.origin + (path === "*" ? "" : path);
    const head = requestHeadText(
      request.method,
      path,
      request.authority,
      request.headers,
      names,
      extra,
      downstream.connection.madeFields,
    );
    this.upstream = connection;
    connection.send(head, request.method, length, preserve, this);
    // The head goes out with the first body bytes if they are there already, else at once: `Expect: 100-continue`.
    requestSide.sendTo(connection);
  }

  #sendHttp2(session: UpstreamSession): void {
    const { request, downstream, requestSide } = this.#exchange;
    // A server that goes away says which requests it has passed over.
    requestSide.keep(REPLAY_BYTES);
    const scheme = this.#endpoint?.pool.target.tls === undefined ? "http" : "https";
    const fields = requestFields(request, scheme, downstream.trailersAccepted);
    const stream = session.send(fields, request.method, requestSide.length, this);
    this.upstream = stream;
    requestSide.sendTo(stream);
  }

  #openTunnel(connection: UpstreamConnection): void {
    this.upstream = connection;
    connection.openTunnel(this);
    this.#answered(200, NO_HEADERS);
    this.#exchange.responseSide.begin({ status: 200, headers: [] }, TUNNEL, null);
    this.#exchange.attemptAnswered();
  }

  // ── the response ──

  onInformational(head: ResponseHead): void {
    this.#exchange.downstream.sendInformational(head.status, head.headers);
  }

  onResponse(head: ResponseHead, length: number): void {
    const exchange = this.#exchange;
    const { responseSide, trace } = exchange;
    const response: HttpResponse = { status: head.status, headers: head.headers };
    this.#answered(head.status, head.headers);
    trace?.responseSnapshot("raw response", response);
    const health = this.#backend.outliers;
    if (health !== undefined) this.#outcome = health.classify(this, response);
    if (length === TUNNEL && !this.#acceptsTunnel(head)) return;
    trace?.responseSnapshot("backend response ready", response);
    responseSide.begin(response, length, head.rawNames);
    exchange.attemptAnswered();
  }

  #answered(status: number, headers: HeaderList): void {
    this.answeredAt = performance.now();
    clearTimeout(this.#timer);
    this.#exchange.stopDeadline();
    this.#report(status, null, headers);
  }

  /** The upstream may only switch to the protocol that the client asked for (RFC 9110 7.8). */
  #acceptsTunnel(head: ResponseHead): boolean {
    const asked = this.#exchange.downstream.upgrade;
    if (asked !== "" && head.upgrade.toLowerCase() === asked.toLowerCase()) {
      head.headers.push("connection", "upgrade", "upgrade", head.upgrade);
      return true;
    }
    this.abandon({ countFailure: true });
    const detail = `backend tried ${head.upgrade || "nothing"} but ${asked || "nothing"} was requested`;
    this.#exchange.exit(new GatewayError("TG_UPGRADE_MISMATCH", detail));
    return false;
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    this.#exchange.responseSide.receive(buffer, from, to);
  }

  onResponseBatch(): void {
    this.#exchange.responseSide.endBatch();
  }

  onResponseEnd(trailers: HeaderList): void {
    const exchange = this.#exchange;
    if (exchange.closed) return;
    if (this.#outcome !== undefined) this.#backend.outliers?.classifyTrailers(this, this.#outcome, trailers);
    exchange.span?.callTrailers(trailers);
    // The connection may serve another exchange by now. A tunnel goes on in the other direction.
    if (!exchange.responseSide.tunnel) this.upstream = undefined;
    exchange.responseSide.end(trailers);
  }

  onUpstreamDrain(): void {
    this.#exchange.downstream.resumeBody();
  }

  onUpstreamFailure(message: string, answered: boolean): void {
    const exchange = this.#exchange;
    if (exchange.closed) return;
    const { upstream } = this;
    this.upstream = undefined;
    this.#report(null, message);
    const stale = !exchange.responseSide.started && upstream !== undefined && this.#mayReplay(upstream, answered);
    // That a connection was closed while it idled says nothing about the endpoint.
    this.abandon({ countFailure: !stale });
    if (stale) this.#replay();
    else exchange.attemptFailed(new GatewayError("TG_UPSTREAM_FAILED", message), message);
  }

  onUpstreamFault(error: unknown): void {
    const exchange = this.#exchange;
    exchange.services.log.error("a request failed inside the gateway", { error: asError(error) });
    if (exchange.closed) return;
    exchange.blame("TG_INTERNAL", ERRORS.TG_INTERNAL.message);
    this.abandon({ countFailure: false });
    exchange.abort();
  }

  /** Whether a call that failed is made again without a policy for it. */
  #mayReplay(upstream: Upstream, answered: boolean): boolean {
    const { requestSide, request } = this.#exchange;
    return requestSide.repeatable && mayResend(upstream, request.method, answered, this.attempts);
  }

  #replay(): void {
    try {
      this.#attempt(true);
    } catch (error) {
      this.#exchange.fail(error);
    }
  }

  // ── the end ──

  complete(status: number): void {
    if (this.#exchange.responseSide.tunnel) this.upstream = undefined;
    // Still there when a policy has replaced the body: nothing reads the rest of the upstream's.
    this.#drop();
    this.#end(status, (performance.now() - this.startedAt) / 1000);
  }

  abandon({ countFailure }: { readonly countFailure: boolean }): void {
    this.#drop();
    if (countFailure) this.#end(0, 0);
    else {
      this.#endpoint?.abandon();
      this.#endpoint = undefined;
      this.#outcome = undefined;
    }
  }

  expire(): void {
    const { requestSide } = this.#exchange;
    // A client that is slow to send its request is no fault of the endpoint's.
    this.abandon({ countFailure: this.upstream === undefined || requestSide.complete });
  }

  discardResponse(status: number): void {
    const seconds = (performance.now() - this.startedAt) / 1000;
    this.#drop();
    this.#end(status, seconds);
    this.answeredAt = 0;
  }

  answeredInstead(error: string | null): void {
    clearTimeout(this.#timer);
    this.#report(null, error);
    this.answeredAt = 0;
  }

  #drop(): void {
    clearTimeout(this.#timer);
    this.#cancelConnect?.();
    this.#cancelConnect = undefined;
    const { upstream } = this;
    this.upstream = undefined;
    upstream?.destroy();
  }

  /** With `status`, after `seconds`, or with 0 for no usable answer. The balancer learns from it. */
  #end(status: number, seconds: number): void {
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return;
    const outcome = this.#outcome;
    this.#endpoint = undefined;
    this.#outcome = undefined;
    const health = this.#backend.outliers;
    if (health === undefined) {
      endpoint.end(status !== 0 && status < 500, seconds);
      return;
    }
    const { retry, trace } = this.#exchange;
    // A tunnel has no answer to classify: it has worked.
    const result = status === 0 ? NO_RESPONSE : (outcome ?? { healthy: status < 500, wait: undefined });
    const before = endpoint.evictedUntil;
    health.record(endpoint, result, seconds, retry?.backoff ?? 0);
    if (trace !== undefined && endpoint.evictedUntil > before) trace.evicted(endpoint);
  }

  /** Tells traces and spans that the attempt has a response, or none and why; nothing when none is under way. */
  #report(status: number | null, error: string | null, headers: HeaderList = NO_HEADERS): void {
    this.#exchange.trace?.callEnded(status, error);
    this.#exchange.span?.callEnded(status, error, headers);
  }

  #startTimers(): void {
    const exchange = this.#exchange;
    exchange.startDeadline();
    const { backendRequestTimeout } = exchange;
    if (backendRequestTimeout === 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#timeOut(), backendRequestTimeout);
  }

  #timeOut(): void {
    const exchange = this.#exchange;
    if (exchange.closed || exchange.responseSide.started) return;
    const running = this.upstream !== undefined;
    this.expire();
    const error = new GatewayError("TG_UPSTREAM_TIMEOUT");
    if (!running || this.#mayRunTwice()) exchange.attemptFailed(error, "upstream call timeout");
    else exchange.exit(error);
  }

  /** Whether the retry policy repeats an attempt that the backend may still be working on. */
  #mayRunTwice(): boolean {
    const { retry, request, trace } = this.#exchange;
    if (retry === undefined || retry.namesMethods || isIdempotent(request.method)) return true;
    trace?.skipped("retry", `the backend may still be working on the request, and ${request.method} is not idempotent`);
    return false;
  }
}

/** Whether the request goes out as HTTP/2 (reference 2.5), the client's side being HTTP/1.1. */
function wantsHttp2({ downstream, request }: Exchange, use: Http2Use): boolean {
  if (request.method === "CONNECT") return false;
  if (use === "asked") return downstream.connection.tls !== undefined && isGrpc(request.headers);
  // A server that offers both can still be asked for an upgrade.
  return use === "always" || (use === "offered" && downstream.upgrade === "");
}

/** Clients that offer the cleartext upgrade to HTTP/2 are content with an answer; others want the other protocol. */
function canIgnoreUpgrade(upgrade: string): boolean {
  return upgrade === "" || upgrade.toLowerCase() === "h2c";
}

/** The upstream is asked for by the name that it is configured with, unless a rewrite has said otherwise (reference 2.5). */
function rewriteAuthority({ selected, request }: Exchange, pool: Pool): void {
  if (pool.hostname === undefined) return;
  if (selected.backend?.target.type === "static" || selected.dynamicTarget !== "") request.authority = pool.hostname;
}

/** A proxy forwards by the target of the request, and Host has to be the same (RFC 9112 3.2.2). */
function addressProxy({ request }: Exchange, { authority, authorization }: ViaProxy): void {
  request.authority = authority;
  if (authorization !== undefined) setHeader(request.headers, "proxy-authorization", authorization);
}
