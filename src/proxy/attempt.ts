import type { ErrorCode } from "../base/errors.ts";
import { alignNames } from "../http/h1/names.ts";
import { requestHeadText } from "../http/h1/serialize.ts";
import { setHeader } from "../http/message.ts";
import { UNKNOWN_LENGTH } from "../http/stream.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { ViaProxy } from "../upstream/dialer.ts";
import type { Pool } from "../upstream/pool.ts";
import { hasBody } from "./body/request-body.ts";
import { chooseEndpoint, endpointName } from "./choose-endpoint.ts";
import type { CompiledBackend } from "./compiled.ts";
import type { CallingExchange, ExchangeState } from "./exchange-state.ts";
import { fail } from "./respond.ts";

/** Methods that may be sent twice without harm (RFC 9110 9.2.2). */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);
/** Connections of a pool may all be stale at once; after this many the request fails. */
const MAX_ATTEMPTS = 3;

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
  x.attempts++;
  x.endpoint = endpoint;
  x.endpointName = endpointName(backend, endpoint);
  endpoint.begin();
  startTimers(x);
  if (x.authorityMode === "auto") rewriteAuthority(x, endpoint.pool);
  if (endpoint.pool.viaProxy !== undefined) addressProxy(x, endpoint.pool.viaProxy);
  x.span?.callStarted(x.request, x.endpointName);
  if (x.trace !== undefined) {
    x.trace.requestSnapshot("final request");
    x.trace.callStarted(x.endpointName);
  }
  x.calledAt = performance.now();
  // A tunnel ends with its connection, so an idle one gains nothing.
  const connection = fresh || x.request.method === "CONNECT" ? undefined : endpoint.pool.take();
  if (connection !== undefined) send(x, connection);
  else {
    const waiter = {
      onConnection: (opened: UpstreamConnection) => {
        x.cancelConnect = undefined;
        send(x, opened);
      },
      onConnectFailure: (code: ErrorCode, message: string) => x.onConnectFailure(code, message),
    };
    x.cancelConnect = endpoint.pool.connect(waiter, x.request.method === "CONNECT");
  }
}

/** A pooled connection that closes before it answers was probably closed by the upstream while it idled. */
export function canRetry(x: ExchangeState, connection: UpstreamConnection, answered: boolean): boolean {
  return (
    connection.served > 0 &&
    !answered &&
    x.attempts < MAX_ATTEMPTS &&
    x.downstream.requestLength === 0 &&
    IDEMPOTENT.has(x.request.method)
  );
}

function send(x: CallingExchange, connection: UpstreamConnection): void {
  const { request, downstream } = x;
  if (request.method === "CONNECT") {
    x.onTunnel(connection);
    return;
  }
  if (x.retry !== undefined && hasBody(downstream)) x.requestBody.keep(REPLAY_BYTES);
  const { body } = x;
  const length = body === undefined ? downstream.requestLength : body.length;
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
  const head = requestHeadText(request.method, path, request.authority, request.headers, names, extra);
  x.upstream = connection;
  connection.send(head, request.method, length, preserve, x);
  // The head goes out with the first body bytes if they are there already, else at once: `Expect: 100-continue`.
  if (body !== undefined && (length !== 0 || hasBody(downstream))) body.sendTo(connection);
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
  x.giveUpCall(x.upstream === undefined || sent ? "endpoint" : "nobody");
  if (code === "TG_UPSTREAM_TIMEOUT" && x.retryCall("upstream call timeout")) return;
  fail(x, code);
}
