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
import { isIdempotent, mayResend } from "../upstream/resend.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { hasBody } from "./body/request-body.ts";
import { chooseEndpoint, endpointName } from "./choose-endpoint.ts";
import type { CompiledBackend } from "./compiled.ts";
import type { CallingExchange, ExchangeState } from "./exchange-state.ts";
import { fail } from "./respond.ts";

/** Bytes of a request body that are kept for further attempts (reference 3.18). */
const REPLAY_BYTES = 64 * 1024;

/** Chooses an endpoint, connects and sends the request. `fresh`: not on a pooled connection, which proved to be stale. */
export function attempt(x: CallingExchange, fresh: boolean): void {
  const backend = x.backend as CompiledBackend;
  const endpoint = chooseEndpoint(x, backend);
  if (endpoint === undefined) {
    fail(x, "TG_NO_HEALTHY_BACKENDS");
    return;
  }
  const { pool } = endpoint;
  const http2 = pool.http2 !== "never" && wantsHttp2(x, pool.http2);
  if (http2 && !canIgnoreUpgrade(x.downstream.upgrade)) {
    fail(x, "TG_UPGRADE_MISMATCH", `${x.downstream.upgrade} was requested of a backend that speaks HTTP/2`);
    return;
  }
  x.attempts++;
  x.endpoint = endpoint;
  x.endpointName = endpointName(backend, endpoint);
  endpoint.begin();
  backend.calls.total++;
  startTimers(x);
  if (x.authorityMode === "auto") rewriteAuthority(x, pool);
  if (pool.viaProxy !== undefined && !http2) addressProxy(x, pool.viaProxy);
  x.span?.callStarted(x.request, x.endpointName);
  if (x.trace !== undefined) {
    x.trace.requestSnapshot("final request");
    x.trace.callStarted(x.endpointName);
  }
  x.calledAt = performance.now();
  // A tunnel ends with its connection, so an idle one gains nothing.
  const giveUp = x.request.method === "CONNECT" ? pool.connect(x, true) : pool.reach(http2, fresh, x);
  if (giveUp !== undefined) x.cancelConnect = giveUp;
}

/** Whether the request goes out as HTTP/2 (reference 2.5), the client's side being HTTP/1.1. */
function wantsHttp2({ downstream, request }: ExchangeState, use: Http2Use): boolean {
  if (request.method === "CONNECT") return false;
  if (use === "asked") return downstream.tls !== undefined && isGrpc(request.headers);
  // A server that offers both can still be asked for an upgrade.
  return use === "always" || (use === "offered" && downstream.upgrade === "");
}

/** Clients that offer the cleartext upgrade to HTTP/2 are content with an answer; others want the other protocol. */
function canIgnoreUpgrade(upgrade: string): boolean {
  return upgrade === "" || upgrade.toLowerCase() === "h2c";
}

/** Whether a call that failed is made again without a policy for it. */
export function canResend(x: ExchangeState, upstream: Upstream, answered: boolean): boolean {
  const { downstream, request, body } = x;
  if (!(body?.repeatable ?? downstream.requestLength === 0)) return false;
  return mayResend(upstream, request.method, answered, x.attempts);
}

/** Sends the request on a connection that is free. */
export function sendHttp1(x: CallingExchange, connection: UpstreamConnection): void {
  const { request, downstream } = x;
  if (x.retry !== undefined && hasBody(downstream)) x.requestBody.keep(REPLAY_BYTES);
  const length = requestLength(x);
  let extra = "";
  if (length === UNKNOWN_LENGTH) extra = "transfer-encoding: chunked\r\n";
  if (downstream.upgrade !== "") extra += `connection: upgrade\r\nupgrade: ${downstream.upgrade}\r\n`;
  else if (downstream.trailersAccepted) extra += "connection: te\r\nte: trailers\r\n";
  const preserve = downstream.rawNames !== null;
  const names = downstream.rawNames === null ? null : alignNames(request.headers, downstream.rawNames);
  let path = request.path + request.search;
  const via = x.endpoint?.pool.viaProxy;
  // The server as a whole has no path: `OPTIONS *` (RFC 9112 3.2.4).
  if (via !== undefined) path = via.origin + (path === "*" ? "" : path);
  const head = requestHeadText(
    request.method,
    path,
    request.authority,
    request.headers,
    names,
    extra,
    downstream.madeFields,
  );
  x.upstream = connection;
  connection.send(head, request.method, length, preserve, x);
  sendBody(x, connection, length);
}

/** Sends the request on a connection that has room for another stream. */
export function sendHttp2(x: CallingExchange, session: UpstreamSession): void {
  const { request, downstream } = x;
  // A server that goes away says which requests it has passed over.
  if (hasBody(downstream)) x.requestBody.keep(REPLAY_BYTES);
  const length = requestLength(x);
  const scheme = x.endpoint?.pool.target.tls === undefined ? "http" : "https";
  const fields = requestFields(request, scheme, downstream.trailersAccepted);
  const stream = session.send(fields, request.method, length, x);
  x.upstream = stream;
  sendBody(x, stream, length);
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
function rewriteAuthority(x: ExchangeState, pool: Pool): void {
  if (pool.hostname === undefined) return;
  if (x.backend?.target.type === "static" || x.dynamicTarget !== "") x.request.authority = pool.hostname;
}

/** A proxy forwards by the target of the request, and Host has to be the same (RFC 9112 3.2.2). */
function addressProxy(x: ExchangeState, { authority, authorization }: ViaProxy): void {
  x.request.authority = authority;
  if (authorization !== undefined) setHeader(x.request.headers, "proxy-authorization", authorization);
}

/** The deadline of the whole request, from when somebody waits for something. */
export function startRequestTimer(x: CallingExchange): void {
  if (x.requestTimeout === 0 || x.requestTimer !== undefined) return;
  const left = Math.max(0, x.requestTimeout - (performance.now() - x.startedAt));
  x.requestTimer = setTimeout(() => expire(x, "TG_REQUEST_TIMEOUT"), left);
}

function startTimers(x: CallingExchange): void {
  startRequestTimer(x);
  if (x.backendRequestTimeout > 0) {
    clearTimeout(x.attemptTimer);
    x.attemptTimer = setTimeout(() => expire(x, "TG_UPSTREAM_TIMEOUT"), x.backendRequestTimeout);
  }
}

function expire(x: CallingExchange, code: "TG_REQUEST_TIMEOUT" | "TG_UPSTREAM_TIMEOUT"): void {
  if (x.over || x.responded) return;
  // A client that is slow to send its request is no fault of the endpoint's.
  const sent = x.requestEnded || x.downstream.requestLength === 0;
  const running = x.upstream !== undefined;
  x.giveUpCall(!running || sent ? "endpoint" : "nobody");
  if (code === "TG_UPSTREAM_TIMEOUT" && (!running || mayRunTwice(x)) && x.retryCall("upstream call timeout")) return;
  fail(x, code);
}

/** Whether the retry policy repeats an attempt that the backend may still be working on. */
function mayRunTwice({ request, retry, trace }: ExchangeState): boolean {
  if (retry === undefined || retry.namesMethods || isIdempotent(request.method)) return true;
  trace?.skipped("retry", `the backend may still be working on the request, and ${request.method} is not idempotent`);
  return false;
}
