import { formatHostPort } from "../base/listen-address.ts";
import type { AccessRecord } from "../telemetry/access-log.ts";
import { shownSearch } from "../trace/redaction.ts";
import { type ExchangeState, FINISH } from "./exchange-state.ts";
import { isLogged, logAccess } from "./telemetry/log-access.ts";

/** Accounts for an exchange that has ended, one way or another: metrics, access log, end of the trace. */
export function finish(exchange: ExchangeState): void {
  if (exchange.closed) return;
  exchange.closed = true;
  exchange.phase = FINISH;
  clearTimeout(exchange.requestTimer);
  clearTimeout(exchange.attemptTimer);
  exchange.notifyClosed();
  const now = performance.now();
  exchange.endedAt = now;
  const { services } = exchange;
  services.metrics.inFlight.count--;
  const cache = (
    (exchange.backendSelected ? exchange.backend : undefined) ??
    exchange.route ??
    exchange.listener ??
    exchange.bind
  ).series;
  const custom = services.customLabels?.read(exchange.variables);
  const { method } = exchange.request;
  const series =
    custom === undefined
      ? cache.get(method, exchange.status, exchange.reason)
      : cache.getCustom(method, exchange.status, exchange.reason, custom);
  const { requests } = services.metrics;
  requests.count(series, (now - exchange.startedAt) / 1000, exchange.responseBytes, Math.max(0, exchange.attempts - 1));
  if (exchange.answeredAt !== 0) {
    requests.countProcessing(
      series,
      (exchange.calledAt - exchange.startedAt) / 1000,
      (now - exchange.answeredAt) / 1000,
    );
    services.upstreamCall.observe((exchange.answeredAt - exchange.calledAt) / 1000);
  }
  if (exchange.span !== undefined || isLogged(exchange.bind, services.accessLog)) record(exchange, now);
  exchange.trace?.finished(
    exchange.status === 0 ? null : exchange.status,
    exchange.error ?? null,
    exchange.responseHasBody,
  );
}

/** The upstream's answer is complete. */
export function endUpstream(exchange: ExchangeState): void {
  const now = performance.now();
  exchange.upstream = undefined;
  exchange.endCall(exchange.status, (now - exchange.calledAt) / 1000);
  finish(exchange);
}

/** What a request leaves behind: a line in the access log, and what collectors get. */
function record(exchange: ExchangeState, now: number): void {
  const facts = factsOf(exchange, now);
  logAccess(facts, exchange.bind, exchange.services.accessLog, exchange);
  exchange.span?.finished(facts, exchange.request.scheme, exchange.variables);
}

function factsOf(exchange: ExchangeState, now: number): AccessRecord {
  const { request, span } = exchange;
  return {
    time: Date.now(),
    requestId: exchange.requestId,
    gateway: exchange.listener?.gateway,
    listener: exchange.listener?.name,
    routeRule: exchange.route?.rule,
    route: exchange.route?.label,
    endpoint: exchange.endpointName,
    source: formatHostPort(exchange.downstream.connection.remoteAddress, exchange.downstream.connection.remotePort),
    method: request.method,
    host: exchange.host,
    path: shownTarget(exchange),
    version: request.version,
    status: exchange.status,
    grpcStatus: exchange.grpcStatus,
    traceId: span?.traceId,
    spanId: span?.spanId,
    jwtSubject: subjectOf(exchange.found.jwt),
    protocol: "http",
    retryAttempt: exchange.attempts > 1 ? exchange.attempts - 1 : undefined,
    error: exchange.error,
    reason: exchange.reason,
    bytesReceived: exchange.downstream.bodyBytes,
    bytesSent: exchange.responseBytes,
    durationMs: now - exchange.startedAt,
  };
}

/** Path and query as the client has sent them, without its secrets. */
function shownTarget({ arrivedTarget, bind }: ExchangeState): string {
  const query = arrivedTarget.indexOf("?");
  if (query === -1) return arrivedTarget;
  const hidden = bind.policies.credentials.parametersAt(arrivedTarget.slice(0, query));
  return hidden.size === 0 ? arrivedTarget : shownSearch(arrivedTarget, hidden);
}

function subjectOf(jwt: unknown): string | undefined {
  const subject = (jwt as { readonly sub?: unknown } | undefined)?.sub;
  return typeof subject === "string" ? subject : undefined;
}
