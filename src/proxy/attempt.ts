import { isGrpc } from "../http/grpc-reply.ts";
import { alignNames } from "../http/h1/names.ts";
import { requestHeadText } from "../http/h1/serialize.ts";
import { requestFields } from "../http/h2/fields.ts";
import { setHeader } from "../http/message.ts";
import { UNKNOWN_LENGTH } from "../http/stream.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { ViaProxy } from "../upstream/dialer.ts";
import type { UpstreamSession } from "../upstream/h2/session.ts";
import type { Pool } from "../upstream/pool.ts";
import type { Http2Use } from "../upstream/pool-target.ts";
import { mayResend } from "../upstream/resend.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { isIdempotent } from "../upstream/upstream-call.ts";
import { hasBody } from "./body/request-body.ts";
import { chooseEndpoint, endpointName } from "./choose-endpoint.ts";
import type { CompiledBackend } from "./compiled.ts";
import type { CallingExchange, ExchangeState } from "./exchange-state.ts";
import { fail } from "./respond.ts";

/** Bytes of a request body that are kept for further attempts (reference 3.18). */
const REPLAY_BYTES = 64 * 1024;

/** Chooses an endpoint, connects and sends the request. `fresh`: not on a pooled connection, which proved to be stale. */
export function attempt(exchange: CallingExchange, fresh: boolean): void {
  const backend = exchange.backend as CompiledBackend;
  const endpoint = chooseEndpoint(exchange, backend);
  if (endpoint === undefined) {
    fail(exchange, "TG_NO_HEALTHY_BACKENDS");
    return;
  }
  const { pool } = endpoint;
  const http2 = pool.http2 !== "never" && wantsHttp2(exchange, pool.http2);
  if (http2 && !canIgnoreUpgrade(exchange.downstream.upgrade)) {
    fail(
      exchange,
      "TG_UPGRADE_MISMATCH",
      `${exchange.downstream.upgrade} was requested of a backend that speaks HTTP/2`,
    );
    return;
  }
  exchange.attempts++;
  exchange.endpoint = endpoint;
  exchange.endpointName = endpointName(backend, endpoint);
  endpoint.begin();
  backend.calls.total++;
  startTimers(exchange);
  if (exchange.authorityMode === "auto") rewriteAuthority(exchange, pool);
  if (pool.viaProxy !== undefined && !http2) addressProxy(exchange, pool.viaProxy);
  exchange.span?.callStarted(exchange.request, exchange.endpointName);
  if (exchange.trace !== undefined) {
    exchange.trace.requestSnapshot("final request");
    exchange.trace.callStarted(exchange.endpointName);
  }
  exchange.calledAt = performance.now();
  // A tunnel ends with its connection, so an idle one gains nothing.
  const giveUp =
    exchange.request.method === "CONNECT" ? pool.connect(exchange, true) : pool.acquire(http2, fresh, exchange);
  if (giveUp !== undefined) exchange.cancelConnect = giveUp;
}

/** Whether the request goes out as HTTP/2 (reference 2.5), the client's side being HTTP/1.1. */
function wantsHttp2({ downstream, request }: ExchangeState, use: Http2Use): boolean {
  if (request.method === "CONNECT") return false;
  if (use === "asked") return downstream.connection.tls !== undefined && isGrpc(request.headers);
  // A server that offers both can still be asked for an upgrade.
  return use === "always" || (use === "offered" && downstream.upgrade === "");
}

/** Clients that offer the cleartext upgrade to HTTP/2 are content with an answer; others want the other protocol. */
function canIgnoreUpgrade(upgrade: string): boolean {
  return upgrade === "" || upgrade.toLowerCase() === "h2c";
}

/** Whether a call that failed is made again without a policy for it. */
export function canResend(exchange: ExchangeState, upstream: Upstream, answered: boolean): boolean {
  const { downstream, request, body } = exchange;
  if (!(body?.repeatable ?? downstream.requestLength === 0)) return false;
  return mayResend(upstream, request.method, answered, exchange.attempts);
}

/** Sends the request on a connection that is free. */
export function sendHttp1(exchange: CallingExchange, connection: UpstreamConnection): void {
  const { request, downstream } = exchange;
  if (exchange.retry !== undefined && hasBody(downstream)) exchange.requestBody.keep(REPLAY_BYTES);
  const length = requestLength(exchange);
  let extra = "";
  if (length === UNKNOWN_LENGTH) extra = "transfer-encoding: chunked\r\n";
  if (downstream.upgrade !== "") extra += `connection: upgrade\r\nupgrade: ${downstream.upgrade}\r\n`;
  else if (downstream.trailersAccepted) extra += "connection: te\r\nte: trailers\r\n";
  const preserve = downstream.rawNames !== null;
  const names = downstream.rawNames === null ? null : alignNames(request.headers, downstream.rawNames);
  let path = request.path + request.search;
  const via = exchange.endpoint?.pool.viaProxy;
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
  exchange.upstream = connection;
  connection.send(head, request.method, length, preserve, exchange);
  sendBody(exchange, connection, length);
}

/** Sends the request on a connection that has room for another stream. */
export function sendHttp2(exchange: CallingExchange, session: UpstreamSession): void {
  const { request, downstream } = exchange;
  // A server that goes away says which requests it has passed over.
  if (hasBody(downstream)) exchange.requestBody.keep(REPLAY_BYTES);
  const length = requestLength(exchange);
  const scheme = exchange.endpoint?.pool.target.tls === undefined ? "http" : "https";
  const fields = requestFields(request, scheme, downstream.trailersAccepted);
  const stream = session.send(fields, request.method, length, exchange);
  exchange.upstream = stream;
  sendBody(exchange, stream, length);
}

/** Bytes that the upstream is told to expect. */
function requestLength({ body, downstream }: ExchangeState): number {
  return body === undefined ? downstream.requestLength : body.length;
}

/** The head goes out with the first body bytes if they are there already, else at once: `Expect: 100-continue`. */
function sendBody({ body, downstream }: ExchangeState, upstream: Upstream, length: number): void {
  if (body !== undefined && (length !== 0 || hasBody(downstream))) body.sendTo(upstream);
  else if (length !== 0) downstream.readBody();
}

/** The upstream is asked for by the name that it is configured with, unless a rewrite has said otherwise (reference 2.5). */
function rewriteAuthority(exchange: ExchangeState, pool: Pool): void {
  if (pool.hostname === undefined) return;
  if (exchange.backend?.target.type === "static" || exchange.dynamicTarget !== "")
    exchange.request.authority = pool.hostname;
}

/** A proxy forwards by the target of the request, and Host has to be the same (RFC 9112 3.2.2). */
function addressProxy(exchange: ExchangeState, { authority, authorization }: ViaProxy): void {
  exchange.request.authority = authority;
  if (authorization !== undefined) setHeader(exchange.request.headers, "proxy-authorization", authorization);
}

/** The deadline of the whole request, from when somebody waits for something. */
export function startRequestTimer(exchange: CallingExchange): void {
  if (exchange.requestTimeout === 0 || exchange.requestTimer !== undefined) return;
  const left = Math.max(0, exchange.requestTimeout - (performance.now() - exchange.startedAt));
  exchange.requestTimer = setTimeout(() => expire(exchange, "TG_REQUEST_TIMEOUT"), left);
}

function startTimers(exchange: CallingExchange): void {
  startRequestTimer(exchange);
  if (exchange.backendRequestTimeout > 0) {
    clearTimeout(exchange.attemptTimer);
    exchange.attemptTimer = setTimeout(() => expire(exchange, "TG_UPSTREAM_TIMEOUT"), exchange.backendRequestTimeout);
  }
}

function expire(exchange: CallingExchange, code: "TG_REQUEST_TIMEOUT" | "TG_UPSTREAM_TIMEOUT"): void {
  if (exchange.closed || exchange.responded) return;
  // A client that is slow to send its request is no fault of the endpoint's.
  const sent = exchange.requestEnded || exchange.downstream.requestLength === 0;
  const running = exchange.upstream !== undefined;
  exchange.abandonAttempt({ countFailure: !running || sent });
  if (
    code === "TG_UPSTREAM_TIMEOUT" &&
    (!running || mayRunTwice(exchange)) &&
    exchange.retryCall("upstream call timeout")
  )
    return;
  fail(exchange, code);
}

/** Whether the retry policy repeats an attempt that the backend may still be working on. */
function mayRunTwice({ request, retry, trace }: ExchangeState): boolean {
  if (retry === undefined || retry.namesMethods || isIdempotent(request.method)) return true;
  trace?.skipped("retry", `the backend may still be working on the request, and ${request.method} is not idempotent`);
  return false;
}
