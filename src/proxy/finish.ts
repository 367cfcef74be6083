import { formatHostPort } from "../base/listen-address.ts";
import { type AccessRecord, formatAccessLog } from "../telemetry/access-log.ts";
import { shownSearch } from "../trace/redaction.ts";
import { type ExchangeState, FINISH } from "./exchange-state.ts";

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
  const cache = (x.backend ?? x.route ?? x.listener ?? x.bind).series;
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
  const logged = services.accessLog.enabled("info");
  if (logged || x.span !== undefined || x.bind.logExport !== undefined) record(x, now, logged);
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
function record(x: ExchangeState, now: number, logged: boolean): void {
  const facts = factsOf(x, now);
  if (logged) logAccess(x, facts);
  x.bind.logExport?.add(facts, x.variables);
  x.span?.finished(facts, x.request.scheme, x.variables);
}

function logAccess(x: ExchangeState, facts: AccessRecord): void {
  const edits = x.bind.accessLog;
  if (edits?.wants(x.variables) === false) return;
  const { output } = x.services.accessLog;
  const line =
    edits === undefined ? formatAccessLog(facts, output.format) : edits.format(facts, output.format, x.variables);
  output.write(`${line}\n`);
}

function factsOf(x: ExchangeState, now: number): AccessRecord {
  const { request, span } = x;
  return {
    time: Date.now(),
    gateway: x.listener?.gateway,
    listener: x.listener?.name,
    route: x.route?.label,
    endpoint: x.endpointName,
    source: formatHostPort(x.downstream.remoteAddress, x.downstream.remotePort),
    method: request.method,
    host: x.host,
    path: shownSearch(x.arrivedTarget, x.bind.policies.credentials.parameters),
    version: request.version,
    status: x.status,
    traceId: span?.traceId,
    spanId: span?.spanId,
    jwtSubject: subjectOf(x.found.jwt),
    protocol: "http",
    retryAttempt: x.attempts > 1 ? x.attempts - 1 : undefined,
    error: x.error,
    reason: x.reason,
    durationMs: Math.round(now - x.startedAt),
  };
}

function subjectOf(jwt: unknown): string | undefined {
  const subject = (jwt as { readonly sub?: unknown } | undefined)?.sub;
  return typeof subject === "string" ? subject : undefined;
}
