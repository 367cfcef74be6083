/**
 * The phase `finish`: accounts once for every exchange, however it ended, in metrics, access log, spans and trace. Requests that
 * could not be read are accounted for here too.
 */
import { ERRORS, type ErrorCode } from "../../base/errors.ts";
import { grpcEndText } from "../../base/grpc-codes.ts";
import { formatOrigin, type Origin } from "../../base/origin.ts";
import { type RedactedTarget, redactTarget } from "../../base/redaction.ts";
import type { ClientConnection } from "../../http/stream.ts";
import { shadowKey } from "../../policies/contract/shadow.ts";
import type { ShadowDecision } from "../../policies/contract/types.ts";
import { reasonNumber } from "../../recorder/codes.ts";
import { isFailedCall } from "../../recorder/recorder.ts";
import type { AccessLog } from "../../telemetry/access-log.ts";
import type { AccessRecord } from "../../telemetry/access-record.ts";
import { parseTraceparent } from "../../telemetry/tracing/traceparent.ts";
import { severityOf } from "../../trace/tracer.ts";
import type { CompiledBind } from "../compile/compiled.ts";
import { originInFrontend, policyOf } from "../compile/provenance.ts";
import type { SeriesCache } from "../compile/series-cache.ts";
import type { Exchange } from "../exchange/exchange.ts";
import type { Result } from "../exchange/result.ts";
import type { Services } from "../services/services.ts";
import { isLogged, logAccess } from "../telemetry/log-access.ts";
import { recordConnection } from "../telemetry/record-connection.ts";
import type { RequestSpan } from "../telemetry/request-span.ts";
import type { RequestTrace } from "../trace/request-trace.ts";
import { type Recorded, recordRequest } from "./record-request.ts";
import { outcomeOf } from "./request-outcome.ts";
import { sampleRequest } from "./sample-request.ts";

/** What decides about the labels of metrics. */
type Chosen = Readonly<Pick<Exchange, "bind" | "selected">>;
/** What metrics count of a request. */
type Counted = Readonly<
  Pick<Exchange, "call" | "grpc" | "request" | "responseSide" | "result" | "services" | "shown" | "startedAt">
>;
/** What log and spans tell of a request. */
type Told = Recorded & Readonly<Pick<Exchange, "policyState" | "services" | "shown" | "variables">>;
type Over = Told & Readonly<Pick<Exchange, "trace">>;

/** Runs once: `close` first, so that callbacks of policies see the exchange as ended and nothing starts again. */
export function finish(exchange: Over & Pick<Exchange, "close">): undefined {
  exchange.close();
  const { services, result, policyState } = exchange;
  const { shadowed } = policyState;
  result.endedAt = performance.now();
  services.metrics.inFlight.count--;
  const series = seriesOf(exchange);
  count(exchange, series);
  const { recorder } = services;
  if (recorder !== undefined) {
    recordRequest(exchange, series.placeIn(recorder), recorder);
    exchange.span?.recorded(recorder.newestId);
    // Others were sampled with their routes.
    if (exchange.selected.route === undefined) sampleRequest(exchange, recorder);
  }
  if (shadowed?.pending === undefined) report(exchange);
  else reportAfter(shadowed.pending, exchange);
}

/** The client has its response; log, spans and trace wait for the shadow policies that are still deciding, such as one whose service is slow. */
function reportAfter(pending: Promise<void>, exchange: Over): void {
  const endedAt = Date.now();
  pending.then(() => report(exchange, endedAt));
}

/** Log, spans and trace. `endedAt`: when the exchange ended, in milliseconds since the epoch; undefined = now. */
function report(exchange: Over, endedAt?: number): void {
  const { services, bind, span, trace, policyState } = exchange;
  const { shadowed } = policyState;
  if (shadowed !== undefined) countShadows(shadowed.decisions, seriesOf(exchange));
  if (span !== undefined || isLogged(bind, services.accessLog)) record(exchange, endedAt);
  if (trace !== undefined) endTrace(trace, exchange);
}

// Separate, because its closure would cost every request an allocation.
function endTrace(trace: RequestTrace, exchange: Over): void {
  const { result, responseSide } = exchange;
  trace.finished(
    result.status === 0 ? null : result.status,
    result.error ?? null,
    originOfError(result, exchange),
    responseSide.hasBody,
    responseSide.grpcStatus,
    () => outcomeOf(exchange, seriesOf(exchange).place),
  );
}

function countShadows(decisions: readonly ShadowDecision[], series: SeriesCache): void {
  for (const { kind, verdict } of decisions) series.shadowDecisions(kind, verdict).count++;
}

/** Counts the request with the most specific labels: those of its backend, otherwise of route, listener or bind. */
function count(exchange: Counted, cache: SeriesCache): void {
  const { services, request, result, startedAt, call, responseSide } = exchange;
  const { status, reason, endedAt } = result;
  const custom = services.customLabels?.read(exchange.shown);
  const { method } = request;
  const series =
    custom === undefined ? cache.get(method, status, reason) : cache.getCustom(method, status, reason, custom);
  const { requests } = services.metrics;
  const retries = call === undefined ? 0 : Math.max(0, call.attempts - 1);
  requests.count(series, (endedAt - startedAt) / 1000, responseSide.bytes, retries, endedAt);
  if (exchange.grpc !== "no") {
    const { grpcStatus } = responseSide;
    cache.grpcCalls(grpcStatus).count++;
    if (grpcStatus !== undefined && isFailedCall(reasonNumber(reason), grpcStatus)) requests.countFailedCall(series);
  }
  // Only if a backend has responded: replies of the gateway would hide how long backends take.
  if (call === undefined || call.answeredAt === 0) return;
  requests.countProcessing(series, (call.startedAt - startedAt) / 1000, (endedAt - call.answeredAt) / 1000);
  services.upstreamCall.observe((call.answeredAt - call.startedAt) / 1000);
}

function seriesOf({ selected, bind }: Chosen): SeriesCache {
  const { backend, reachedBackend, route, listener } = selected;
  return ((reachedBackend ? backend : undefined) ?? route ?? listener ?? bind).series;
}

/** Writes the line of the access log and exports the record and the spans. */
function record(exchange: Told, endedAt = Date.now()): void {
  const { bind, services, span } = exchange;
  const facts = factsOf(exchange, endedAt);
  logAccess(withGrpcFailure(facts, exchange), bind, services.accessLog, exchange);
  if (span !== undefined) finishSpan(span, facts, exchange);
}

function finishSpan(span: RequestSpan, record: AccessRecord, exchange: Told): void {
  const { bind, grpc, selected, result } = exchange;
  const { code, decider } = result;
  const origin = bind.provenance.ofError(code, decider, selected, bind.frontend);
  const decidedBy = origin === undefined ? policyOf(decider)?.policy : formatOrigin(origin);
  span.finished({ record, grpc: grpc !== "no", decidedBy }, exchange);
}

/**
 * A failed gRPC call has HTTP status 200, so without an error its log line would look like a success. Spans have the status of the call.
 */
function withGrpcFailure(facts: AccessRecord, { grpc, responseSide: { grpcStatus } }: Told): AccessRecord {
  if (grpc === "no" || facts.error !== undefined || grpcStatus === 0) return facts;
  const ended = facts.reason === "Upstream" ? "the backend ended the call" : "the call ended";
  return { ...facts, error: `${ended} with ${grpcEndText(grpcStatus)}` };
}

/** The fields of the access log, which spans and exported log records share. */
function factsOf(exchange: Told, time: number): AccessRecord {
  const { request, downstream, selected, call, responseSide, result, span, policyState, services } = exchange;
  const { found, shadowed } = policyState;
  const attempts = call?.attempts ?? 0;
  return {
    time,
    requestId: exchange.requestId,
    gateway: selected.listener?.gateway,
    listener: selected.listener?.name,
    routeRule: selected.route?.rule,
    route: selected.route?.label,
    endpoint: call?.endpointName,
    source: downstream.connection.name,
    method: request.method,
    host: selected.host,
    path: redactedTarget(exchange),
    version: request.version,
    status: result.status,
    grpcStatus: responseSide.grpcStatus,
    traceId: span?.traceId ?? traceIdOf(exchange),
    spanId: span?.spanId,
    jwtSubject: subjectOf(found.jwt),
    protocol: "http",
    retryAttempt: attempts > 1 ? attempts - 1 : undefined,
    error: result.error,
    origin: services.accessLog.explains ? originOfError(result, exchange) : undefined,
    code: result.code,
    reason: result.reason,
    shadow: shadowed && shownShadows(shadowed.decisions, exchange, services.accessLog),
    bytesReceived: downstream.bodyBytes,
    bytesSent: responseSide.bytes,
    durationMs: result.endedAt - exchange.startedAt,
  };
}

function originOfError({ error, code, decider }: Result, { bind, selected }: Chosen): Origin | undefined {
  if (error === undefined) return undefined;
  return bind.provenance.ofError(code, decider, selected, bind.frontend);
}

/** `authorization:deny …` for each shadow policy that does not allow the request, without repetitions by retries; undefined if all do. */
function shownShadows(
  decisions: readonly ShadowDecision[],
  { bind, selected }: Chosen,
  log: AccessLog,
): readonly string[] | undefined {
  const texts = decisions.flatMap(({ kind, phase, rule, verdict, code, reason }) => {
    if (verdict === "allow") return [];
    const origin = log.explains
      ? bind.provenance.ofPolicy({ policy: shadowKey(kind), phase, rule }, selected)
      : undefined;
    const why = log.errorField(reason, code, origin);
    return [why === undefined ? `${kind}:${verdict}` : `${kind}:${verdict} ${why}`];
  });
  return texts.length === 0 ? undefined : [...new Set(texts)];
}

/** Path and query as the client sent them, with its secrets redacted. */
function redactedTarget({ requestSide, bind }: Told): RedactedTarget {
  const { arrivedTarget } = requestSide;
  return redactTarget(arrivedTarget, bind.policies.credentials.parametersOf(arrivedTarget));
}

/** Of a trace that others may record, if the client sent a valid one. */
function traceIdOf({ traceparent }: Told): string | undefined {
  return traceparent === undefined ? undefined : parseTraceparent(traceparent)?.traceId;
}

/** `sub` of verified claims; other types than text are not logged. */
function subjectOf(jwt: unknown): string | undefined {
  const subject = (jwt as { readonly sub?: unknown } | undefined)?.sub;
  return typeof subject === "string" ? subject : undefined;
}

/** A request that could not be read; the engine has responded with an error. */
interface UnreadableRequest {
  readonly code: ErrorCode;
  readonly detail: string;
  /** The bytes that have arrived; undefined for the rest of a body. */
  readonly received: Buffer | undefined;
}

/** Accounts for a request that never became an exchange: metrics, access log, and the trace of a waiting watcher. */
export function recordUnreadable(
  from: ClientConnection,
  { code, detail, received }: UnreadableRequest,
  { series, frontend, generation }: Pick<CompiledBind, "series" | "frontend" | "generation">,
  { metrics, accessLog, watchers, recorder }: Pick<Services, "metrics" | "accessLog" | "watchers" | "recorder">,
): void {
  const { status, message } = ERRORS[code];
  metrics.requests.count(series.get("unknown", status, "InvalidRequest"), 0, 0, 0);
  const origin = originInFrontend(code, frontend);
  accessLog.rejected({ source: from.name, status, error: detail, code, origin });
  if (recorder !== undefined) {
    const what = { kind: "unreadable", generation, protocol: from.protocol, client: from } as const;
    const how = { status, code, reason: ERRORS[code].reason, origin, received: received?.length ?? 0, sent: 0 };
    recordConnection({ ...what, ...how }, series.placeIn(recorder), recorder);
  }
  const tracer = received && watchers.claimUnreadable(received, performance.now());
  if (tracer === undefined) return;
  const error = `${message}: ${detail}`;
  tracer.emit("info", { type: "requestStarted" });
  tracer.emit(severityOf(status, error), { type: "requestFinished", status, error, ...(origin && { origin }) });
  tracer.finish(() => ({
    response: { status, headers: [] },
    record: {
      route: "",
      listener: "",
      endpoint: "",
      error: code,
      reason: ERRORS[code].reason,
      policy: "",
      duration: 0,
      attempts: 0,
    },
  }));
}
