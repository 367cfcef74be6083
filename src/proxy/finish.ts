import { formatHostPort } from "../base/listen-address.ts";
import type { AccessRecord } from "../telemetry/access-log.ts";
import { shownSearch } from "../trace/redaction.ts";
import { type ExchangeState, FINISH } from "./exchange-state.ts";
import { isLogged, logAccess } from "./telemetry/log-access.ts";

/** Accounts for an exchange that has ended, one way or another: metrics, access log, end of the trace. */
export function finish(x: ExchangeState): void {
  if (x.over) return;
  x.over = true;
  x.phase = FINISH;
  clearTimeout(x.requestTimer);
  clearTimeout(x.attemptTimer);
  x.tellOver();
  const now = performance.now();
  x.endedAt = now;
  const { services } = x;
  services.metrics.inFlight.count--;
  const cache = ((x.backendSelected ? x.backend : undefined) ?? x.route ?? x.listener ?? x.bind).series;
  const custom = services.customLabels?.read(x.variables);
  const { method } = x.request;
  const series =
    custom === undefined ? cache.get(method, x.status, x.reason) : cache.getCustom(method, x.status, x.reason, custom);
  const { requests } = services.metrics;
  requests.count(series, (now - x.startedAt) / 1000, x.responseBytes, Math.max(0, x.attempts - 1));
  if (x.answeredAt !== 0) {
    requests.countProcessing(series, (x.calledAt - x.startedAt) / 1000, (now - x.answeredAt) / 1000);
    services.upstreamCall.observe((x.answeredAt - x.calledAt) / 1000);
  }
  if (x.span !== undefined || isLogged(x.bind, services.accessLog)) record(x, now);
  x.trace?.finished(x.status === 0 ? null : x.status, x.error ?? null, x.responseHasBody);
}

/** The upstream's answer is complete. */
export function endUpstream(x: ExchangeState): void {
  const now = performance.now();
  x.upstream = undefined;
  x.endCall(x.status, (now - x.calledAt) / 1000);
  finish(x);
}

/** What a request leaves behind: a line in the access log, and what collectors get. */
function record(x: ExchangeState, now: number): void {
  const facts = factsOf(x, now);
  logAccess(facts, x.bind, x.services.accessLog, x);
  x.span?.finished(facts, x.request.scheme, x.variables);
}

function factsOf(x: ExchangeState, now: number): AccessRecord {
  const { request, span } = x;
  return {
    time: Date.now(),
    requestId: x.requestId,
    gateway: x.listener?.gateway,
    listener: x.listener?.name,
    routeRule: x.route?.rule,
    route: x.route?.label,
    endpoint: x.endpointName,
    source: formatHostPort(x.downstream.remoteAddress, x.downstream.remotePort),
    method: request.method,
    host: x.host,
    path: shownTarget(x),
    version: request.version,
    status: x.status,
    grpcStatus: x.grpcStatus,
    traceId: span?.traceId,
    spanId: span?.spanId,
    jwtSubject: subjectOf(x.found.jwt),
    protocol: "http",
    retryAttempt: x.attempts > 1 ? x.attempts - 1 : undefined,
    error: x.error,
    reason: x.reason,
    bytesReceived: x.downstream.bodyBytes,
    bytesSent: x.responseBytes,
    durationMs: now - x.startedAt,
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
