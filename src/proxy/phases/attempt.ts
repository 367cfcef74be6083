/**
 * The call of an exchange to its backend. It supplies each `UpstreamCall` with the request, and passes the events of the call to the
 * exchange. Each attempt is a new `UpstreamCall`, which handles replays on stale connections itself.
 */
import type { Milliseconds } from "../../base/durations.ts";
import { asError, ERRORS, type ErrorCode, GatewayError, type Why } from "../../base/errors.ts";
import type { Activation } from "../../cel/index.ts";
import { isGrpc } from "../../http/grpc-reply.ts";
import { listHas } from "../../http/h1/framing.ts";
import type { ResponseHead } from "../../http/h1/parse-head.ts";
import { alignNames, requestHeadText } from "../../http/h1/serialize.ts";
import { connectStart, endToEnd, requestStart } from "../../http/h2/fields.ts";
import { headEnd, nextHop } from "../../http/loop.ts";
import {
  getHeader,
  type HeaderList,
  type HttpResponse,
  type Latin1,
  madeOf,
  removeHeader,
  setHeader,
} from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import { ACCEPT_FIELD, isWebSocket, KEY_FIELD, webSocketAccept } from "../../http/websocket.ts";
import type { Balancer } from "../../upstream/balancers/balancer.ts";
import type { OutcomeContext } from "../../upstream/calls/outlier.ts";
import {
  type CallFailure,
  type CallProtocol,
  UpstreamCall,
  type UpstreamCaller,
} from "../../upstream/calls/upstream-call.ts";
import type { ConnectTimes } from "../../upstream/connections/connect-attempt.ts";
import type { UpstreamConnection } from "../../upstream/connections/connection.ts";
import type { ViaProxy } from "../../upstream/connections/dialer.ts";
import type { Upstream } from "../../upstream/connections/upstream.ts";
import type { Endpoint } from "../../upstream/endpoints/endpoint.ts";
import type { UpstreamSession } from "../../upstream/h2/session.ts";
import type { Pool } from "../../upstream/pools/pool.ts";
import type { CompiledBackend } from "../compile/compiled.ts";
import type { BackendCall, Exchange } from "../exchange/exchange.ts";
import { ANSWERED, AttemptFailed, GONE, WAIT } from "../exchange/phase-result.ts";
import { mayFailInTrailers } from "./retry.ts";

/** Bytes of a request body that are kept for further attempts (docs/policies/retry.md). */
const REPLAY_BYTES = 64 * 1024;
const NO_HEADERS: HeaderList = [];

/** What the call may read, set and end. */
type Calling = Pick<
  Exchange,
  | "closed"
  | "deadlines"
  | "downstream"
  | "endPhase"
  | "grpc"
  | "policyState"
  | "request"
  | "requestSide"
  | "responseSide"
  | "result"
  | "retries"
  | "selected"
  | "services"
  | "span"
  | "trace"
  | "variables"
>;

/** The phase `attempt`: its outcome is an event, unless there is no endpoint. */
export function attempt(exchange: Calling & Pick<Exchange, "call">): typeof WAIT | AttemptFailed {
  exchange.call ??= new HttpCall(exchange);
  return exchange.call.attempt();
}

/** Balancers choose evicted and full endpoints too, if there are no others. */
const noEndpoints: Why = () => ({ text: "the backend has no endpoints" });

function withoutEndpoint(): AttemptFailed {
  return new AttemptFailed(new GatewayError("TG_NO_HEALTHY_BACKENDS", undefined, undefined, { why: noEndpoints }));
}

/**
 * `none`: the backend has not responded, or its response is not passed on. `undecided`: a response that may still be retried, so it is
 * held until its first message or its trailers. `answered`: a response that is passed on.
 */
type Answer = "none" | "undecided" | "answered";

export class HttpCall implements BackendCall, UpstreamCaller, OutcomeContext {
  readonly #exchange: Calling;
  attempts = 0;
  endpointName: string | undefined;
  failed: Set<Endpoint> | undefined;
  /** Of the current or last attempt. */
  #endpoint: Endpoint | undefined;
  answeredAt = 0;
  /** The current or last attempt. */
  #call: UpstreamCall | undefined;
  #answer: Answer = "none";

  constructor(exchange: Calling) {
    this.#exchange = exchange;
    this.#backend().retries?.budget?.begin(performance.now());
  }

  /** A retry may have chosen another backend. */
  #backend(): CompiledBackend {
    return this.#exchange.selected.backend as CompiledBackend;
  }

  get balancer(): Balancer | undefined {
    return this.#backend().balancer;
  }

  get startedAt(): number {
    return this.#call?.sentAt ?? 0;
  }

  get upstream(): Upstream | undefined {
    return this.#call?.upstream;
  }

  variablesWith(response: HttpResponse, trailers: HeaderList): Activation {
    return this.#exchange.variables.withResponse(response, trailers);
  }

  /** Throws TG_UPGRADE_MISMATCH. */
  attempt(): typeof WAIT | AttemptFailed {
    const { retries } = this.#exchange;
    // A retry at the same endpoint would probably fail again.
    if (this.#endpoint !== undefined) {
      this.failed ??= new Set();
      this.failed.add(this.#endpoint);
    }
    const call = new UpstreamCall(this, this.#backend());
    this.#call = call;
    if (retries !== undefined) call.retryBackoff = retries.plan.backoff;
    return call.start(this.attemptTimeout) ? WAIT : withoutEndpoint();
  }

  /**
   * An attempt that ends before anything is sent: the request is as the chosen endpoint would get it. undefined: there is an endpoint. Throws
   * TG_UPGRADE_MISMATCH.
   */
  rehearse(): AttemptFailed | undefined {
    const endpoint = this.chooseEndpoint();
    if (endpoint === undefined) return withoutEndpoint();
    this.prepare(endpoint);
    return undefined;
  }

  // ── for the call ──

  get method(): string {
    return this.#exchange.request.method;
  }

  get replayable(): boolean {
    return this.#exchange.requestSide.repeatable;
  }

  get requestSent(): boolean {
    return this.#exchange.requestSide.complete;
  }

  chooseEndpoint(): Endpoint | undefined {
    const { balancer, affinity, target, connection } = this.#backend();
    const exchange = this.#exchange;
    if (balancer !== undefined) {
      // The session's endpoint may be among those that have failed.
      const preferred = this.failed === undefined ? this.#preferred(balancer) : undefined;
      if (preferred !== undefined) return preferred;
      const evicted = exchange.trace && [];
      const endpoint = balancer.choose(affinity?.read(exchange.variables), this.failed, evicted);
      if (evicted !== undefined) exchange.trace?.endpointChosen(endpoint, evicted, balancer);
      return endpoint;
    }
    const { request, services, selected } = exchange;
    if (target.type === "internal") {
      // A path in the configuration selects one endpoint of the admin API; the client's query is kept.
      if (target.path !== "forward") request.path = target.path;
      return services.internal();
    }
    const secure = request.scheme === "https" || connection?.settings.tls !== undefined;
    return services.dynamic(selected.dynamicTarget || request.authority, secure ? 443 : 80, connection);
  }

  /** The endpoint of the session. */
  #preferred(balancer: Balancer): Endpoint | undefined {
    const { preferredEndpoint } = this.#exchange.selected;
    return preferredEndpoint === undefined ? undefined : balancer.find(preferredEndpoint);
  }

  prepare(endpoint: Endpoint): CallProtocol {
    const exchange = this.#exchange;
    const { pool } = endpoint;
    this.#endpoint = endpoint;
    const { request, downstream, trace } = exchange;
    const http2 = wantsHttp2(exchange, pool);
    const webSocket = http2 && isWebSocket(downstream.upgrade);
    if (http2 && !webSocket && downstream.upgrade !== "") throw noUpgrade(downstream.upgrade);
    this.attempts++;
    // The address of the internal admin API would mean nothing to readers of logs.
    this.endpointName = this.#backend().target.type === "internal" ? "internal" : pool.name;
    exchange.deadlines.start();
    exchange.deadlines.forwardGrpc();
    if (exchange.policyState.authorityMode === "auto") rewriteAuthority(exchange, pool);
    if (pool.viaProxy !== undefined && !http2) addressProxy(exchange, pool.viaProxy);
    exchange.span?.callStarted(request, this.endpointName, pool.target.tls !== undefined);
    if (trace !== undefined) {
      trace.requestSnapshot("final request");
      trace.callStarted(this.endpointName);
    }
    if (http2) return webSocket ? "connect" : "http2";
    return request.method === "CONNECT" ? "raw" : "http1";
  }

  // ── the request ──

  onConnection(connection: UpstreamConnection, call: UpstreamCall): void {
    const exchange = this.#exchange;
    exchange.trace?.connected(connection);
    exchange.span?.callConnected({ peer: connection.peer, version: "1.1" });
    if (exchange.request.method !== "CONNECT") {
      this.#sendHttp1(connection, call);
      return;
    }
    this.#answered(200, NO_HEADERS);
    exchange.responseSide.begin({ status: 200, headers: [] }, TUNNEL, null);
    exchange.endPhase(ANSWERED);
  }

  get loop(): Latin1 {
    const { downstream } = this.#exchange;
    return nextHop(downstream.loop, this.attempts > 1);
  }

  #sendHttp1(connection: UpstreamConnection, call: UpstreamCall): void {
    const { request, downstream, requestSide, retries, grpc } = this.#exchange;
    if (retries !== undefined) requestSide.keep(REPLAY_BYTES);
    const { length } = requestSide;
    let extra = "";
    if (length === UNKNOWN_LENGTH) extra += "transfer-encoding: chunked\r\n";
    if (downstream.upgrade !== "") extra += `connection: upgrade\r\nupgrade: ${downstream.upgrade}\r\n`;
    else if (downstream.trailersAccepted || grpc === "translated") extra += "connection: te\r\nte: trailers\r\n";
    const preserve = downstream.rawNames !== null;
    const names = downstream.rawNames === null ? null : alignNames(request.headers, downstream.rawNames);
    let path = request.path + request.search;
    const via = call.endpoint?.pool.viaProxy;
    // The server as a whole has no path: `OPTIONS *` (RFC 9112 3.2.4).
    if (via !== undefined) {
      path = via.origin + (path === "*" ? "" : path);
      // A request meant for HTTP/2, through a tunnel, does not have the target form for a proxy yet.
      addressProxy(this.#exchange, via);
    }
    const head = requestHeadText(
      request.method,
      path,
      request.authority,
      request.headers,
      names,
      extra + headEnd(this.loop),
      downstream.connection.madeFields,
    );
    call.sendHead(connection, head, length, preserve);
    // The head leaves with the first body bytes if they have arrived, otherwise at once: `Expect: 100-continue`.
    requestSide.sendTo(connection);
  }

  onSession(session: UpstreamSession, call: UpstreamCall): void {
    const { request, downstream, requestSide, span, trace, grpc } = this.#exchange;
    trace?.connected(session);
    span?.callConnected({ peer: session.peer, version: "2" });
    const scheme = call.endpoint?.pool.target.tls === undefined ? "http" : "https";
    if (isWebSocket(downstream.upgrade)) {
      this.#openWebSocket(session, scheme, call);
      return;
    }
    // A server that shuts down announces which requests it has not processed: those can be replayed.
    requestSide.keep(REPLAY_BYTES);
    const start = requestStart(request, scheme, downstream.trailersAccepted || grpc === "translated", this.loop);
    requestSide.sendTo(call.openStream(session, start, endToEnd(request.headers), requestSide.length));
  }

  #openWebSocket(session: UpstreamSession, scheme: "http" | "https", call: UpstreamCall): void {
    const { request, downstream } = this.#exchange;
    if (!session.connectProtocol) {
      this.#exchange.endPhase(noUpgrade(downstream.upgrade, " but does not support extended CONNECT"));
      return;
    }
    const headers = madeOf(request.headers, [...endToEnd(request.headers)]);
    removeHeader(headers, KEY_FIELD);
    call.openStream(session, connectStart(request, scheme, "websocket", this.loop), headers, TUNNEL);
  }

  // ── the response ──

  onInformational(head: ResponseHead): void {
    this.#exchange.downstream.sendInformational(head.status, head.headers);
  }

  onResponse(head: ResponseHead, length: number): void {
    const exchange = this.#exchange;
    const { responseSide, trace } = exchange;
    if (length === TUNNEL && head.status !== 101) this.#webSocketOpened(head);
    const response: HttpResponse = { status: head.status, headers: head.headers };
    this.#answered(head.status, head.headers);
    trace?.responseSnapshot("raw response", response);
    this.#call?.classify(this, response);
    if (length === TUNNEL ? !this.#acceptsTunnel(head) : this.#looksOpened(head)) return;
    trace?.responseSnapshot("backend response ready", response);
    responseSide.begin(response, length, head.rawNames);
    if (mayFailInTrailers(exchange, length)) this.#answer = "undecided";
    else exchange.endPhase(ANSWERED);
  }

  /** Passes the held response on. False: it is not passed on, for example because it is retried. */
  #release(): boolean {
    this.#answer = "answered";
    this.#exchange.endPhase(ANSWERED);
    // The loop that ends the phase may have dropped it.
    return !this.#exchange.closed && this.#answer === "answered";
  }

  /** The response to an extended CONNECT gets the form of HTTP/1.1, see http/websocket.ts. */
  #webSocketOpened(head: ResponseHead): void {
    const { downstream, request } = this.#exchange;
    head.status = 101;
    head.upgrade = downstream.upgrade;
    setHeader(head.headers, ACCEPT_FIELD, webSocketAccept(getHeader(request.headers, KEY_FIELD) ?? ""));
  }

  #answered(status: number, headers: HeaderList): void {
    this.#answer = "answered";
    this.answeredAt = performance.now();
    this.#exchange.deadlines.stop();
    const { trace, span } = this.#exchange;
    trace?.callEnded(status, null);
    span?.callAnswered(status, headers);
  }

  /** The upstream may only switch to protocols that the client has listed (RFC 9110 7.8). */
  #acceptsTunnel(head: ResponseHead): boolean {
    const asked = this.#exchange.downstream.upgrade;
    if (isOffered(head.upgrade, asked)) {
      head.headers.push("connection", "upgrade");
      head.headers.push("upgrade", latin1(head.upgrade));
      return true;
    }
    this.#call?.abandon({ countFailure: true });
    const detail = `backend tried ${head.upgrade || "nothing"} but ${asked || "nothing"} was requested`;
    this.#exchange.endPhase(new GatewayError("TG_UPGRADE_MISMATCH", detail));
    return false;
  }

  /** To an HTTP/2 client, any 2xx means that its WebSocket is open (RFC 8441 5). */
  #looksOpened({ status }: ResponseHead): boolean {
    const { request, downstream } = this.#exchange;
    if (request.version !== "HTTP/2" || downstream.upgrade === "" || status >= 300) return false;
    this.#call?.abandon({ countFailure: true });
    this.#exchange.endPhase(
      new GatewayError("TG_UPGRADE_MISMATCH", `backend responded with ${status} without an upgrade`),
    );
    return true;
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    if (this.#answer === "undecided" && !this.#release()) return;
    this.#exchange.responseSide.receive(buffer, from, to);
  }

  onResponseBatch(): void {
    const { requestSide, responseSide } = this.#exchange;
    // A client that is still sending may be waiting for the head.
    if (this.#answer === "undecided" && !requestSide.complete && !this.#release()) return;
    responseSide.endBatch();
  }

  onResponseEnd(trailers: HeaderList): void {
    const { span, responseSide } = this.#exchange;
    span?.callTrailers(trailers);
    if (this.#answer === "undecided") {
      // They may contain the gRPC status that decides about a retry.
      responseSide.trailers = trailers;
      if (!this.#release()) return;
    }
    responseSide.end(trailers);
  }

  onTunnelClosed(): void {
    this.#exchange.responseSide.closeTunnel();
  }

  onUpstreamDrain(): void {
    this.#exchange.requestSide.onDrain();
  }

  // ── failures ──

  onSendFailed(code: ErrorCode, message: string, times: ConnectTimes | undefined): void {
    if (times !== undefined) this.#exchange.trace?.notConnected(times);
    this.#fail(code, message);
  }

  onEvicted(endpoint: Endpoint): void {
    this.#exchange.trace?.evicted(endpoint);
  }

  onCallFailure({ code, message, sent, timedOut }: CallFailure): void {
    const error = timedOut ? new GatewayError(code) : new GatewayError(code, message);
    // There may be another attempt.
    if (timedOut) this.#fail(code, error.message);
    this.#exchange.endPhase(new AttemptFailed(error, timedOut && sent));
  }

  onUpstreamFault(error: unknown): void {
    const exchange = this.#exchange;
    exchange.services.log.error("a request failed inside the gateway", { error: asError(error) });
    if (exchange.closed) return;
    exchange.result.blame("TG_INTERNAL", ERRORS.TG_INTERNAL.message);
    exchange.downstream.abort();
    exchange.endPhase(GONE);
  }

  // ── the end ──

  complete(): void {
    // If a policy has replaced the body of the response, the rest of the original is not read.
    if (this.#exchange.responseSide.tunnel) this.#call?.settle();
    else this.#call?.discard();
  }

  abandon(): void {
    this.#call?.abandon({ countFailure: false });
  }

  get attemptTimeout(): Milliseconds {
    return this.#backend().requestTimeout ?? this.#exchange.policyState.backendRequestTimeout;
  }

  expireAttempt(): void {
    this.#call?.expire();
  }

  expire(): void {
    this.#call?.timeOut();
  }

  discardResponse(): void {
    this.#call?.discard();
    this.#dropAnswer();
  }

  answeredInstead(error: string | null): void {
    this.#fail(this.#exchange.result.code, error);
    this.#dropAnswer();
  }

  #dropAnswer(): void {
    this.#answer = "none";
    this.answeredAt = 0;
  }

  /** Tells traces and spans that the attempt has no response, and why. Does nothing without a current attempt. */
  #fail(code: ErrorCode | undefined, error: string | null): void {
    const { trace, span } = this.#exchange;
    trace?.callEnded(null, error);
    span?.callFailed(code, error);
  }
}

/**
 * Whether the request is sent as HTTP/2 (docs/lifecycle.md#8-attempt). If neither the backend nor its service determines the
 * version, HTTP/2 is used for gRPC from clients inside TLS, and for all requests of plaintext clients that speak HTTP/2
 * themselves. A browser inside TLS speaks HTTP/2 whatever the backend supports, but a plaintext client uses it by prior
 * knowledge. That is knowledge about the gateway, not the backend: it is a guess (see `isGuess` of a session), and HTTP/1.1 is
 * used if the guess was wrong.
 */
function wantsHttp2({ downstream, request, grpc }: Calling, pool: Pool): boolean {
  const use = pool.http2;
  if (request.method === "CONNECT") return false;
  if (grpc === "translated") return use !== "never";
  if (use === "always") return true;
  // More servers support WebSockets over HTTP/1.1 than over HTTP/2, and other upgrades exist only in HTTP/1.1.
  if (use === "never" || downstream.upgrade !== "") return false;
  if (use === "offered") return true;
  if (downstream.connection.tls !== undefined) return isGrpc(request.headers);
  return request.version === "HTTP/2" && (!pool.http1Only || isGrpc(request.headers));
}

function noUpgrade(upgrade: string, more = ""): GatewayError {
  return new GatewayError("TG_UPGRADE_MISMATCH", `${upgrade} was requested of a backend that speaks HTTP/2${more}`);
}

/** Whether `chosen`, one protocol or several layered ones, is in the list `offered`. */
function isOffered(chosen: string, offered: string): boolean {
  const protocols = chosen.split(",").map((each) => each.trim().toLowerCase());
  return protocols.every((each) => each !== "" && listHas(offered, each));
}

/** Sets the authority to the name that the upstream is configured with, unless a rewrite has set another one (reference 2.5). */
function rewriteAuthority({ selected, request }: Calling, pool: Pool): void {
  if (pool.hostname === undefined) return;
  if (selected.backend?.target.type === "static" || selected.dynamicTarget !== "") request.authority = pool.hostname;
}

/** A proxy forwards to the target of the request, and Host has to match it (RFC 9112 3.2.2). */
function addressProxy({ request }: Calling, { authority, authorization }: ViaProxy): void {
  request.authority = authority;
  if (authorization !== undefined) setHeader(request.headers, "proxy-authorization", latin1(authorization));
}
