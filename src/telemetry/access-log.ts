import { formatTimestamp } from "../base/dates.ts";
import { type LogFormat, quote, quoteIfNeeded } from "../base/log.ts";

export type AccessLogFormat = LogFormat;

/** The values of one line about a request or connection. Undefined ones are omitted. */
export interface AccessRecord {
  /** Milliseconds since the epoch at which the request ended. */
  readonly time: number;
  readonly requestId?: string | undefined;
  /** `<namespace>/<name>` */
  readonly gateway?: string | undefined;
  readonly listener?: string | undefined;
  /** `ruleName` of the route. */
  readonly routeRule?: string | undefined;
  /** `<namespace>/<name>` */
  readonly route?: string | undefined;
  /** `<host>:<port>` of the backend that responded. */
  readonly endpoint?: string | undefined;
  /** `<ip>:<port>` of the client. */
  readonly source?: string | undefined;
  readonly method?: string | undefined;
  readonly host?: string | undefined;
  /** With query. */
  readonly path?: string | undefined;
  /** Such as `HTTP/1.1`. */
  readonly version?: string | undefined;
  readonly status?: number | undefined;
  readonly grpcStatus?: number | undefined;
  /** TLS server name; logged only without `host`. */
  readonly sni?: string | undefined;
  readonly traceId?: string | undefined;
  readonly spanId?: string | undefined;
  readonly jwtSubject?: string | undefined;
  /** `http`, `tcp`, `tls` or `udp`. */
  readonly protocol: string;
  /** Number of the retry that produced the result; absent or 0 for the first attempt. */
  readonly retryAttempt?: number | undefined;
  readonly error?: string | undefined;
  /** Why the gateway ended it; `Upstream` (the backend's own response) is not logged. */
  readonly reason?: string | undefined;
  /** Bytes of the request body without framing; of a TCP connection, all bytes. */
  readonly bytesReceived: number;
  /** Bytes of the response body, likewise. */
  readonly bytesSent: number;
  readonly durationMs: number;
}

/**
 * One access log line without its newline, fields in the order of reference 3.29 with the bytes of both directions before the
 * duration. Text: `<time>\tinfo\trequest k=v …`; JSON: `level`, `time`, `scope`, then the fields. Durations are milliseconds:
 * whole ones with their unit in text, numbers in JSON.
 */
export function formatAccessLog(record: AccessRecord, format: AccessLogFormat): string {
  return format === "json" ? formatJson(record) : formatText(record);
}

// Written out field by field, with one growing string and no lists or closures: this runs for every logged request.

function formatText(r: AccessRecord): string {
  let line = `${formatTimestamp(r.time)}\tinfo\trequest`;
  if (r.requestId !== undefined) line += ` request.id=${quoteIfNeeded(r.requestId)}`;
  if (r.gateway !== undefined) line += ` gateway=${quoteIfNeeded(r.gateway)}`;
  if (r.listener !== undefined) line += ` listener=${quoteIfNeeded(r.listener)}`;
  if (r.routeRule !== undefined) line += ` route_rule=${quoteIfNeeded(r.routeRule)}`;
  if (r.route !== undefined) line += ` route=${quoteIfNeeded(r.route)}`;
  if (r.endpoint !== undefined) line += ` endpoint=${quoteIfNeeded(r.endpoint)}`;
  if (r.source !== undefined) line += ` src.addr=${quoteIfNeeded(r.source)}`;
  if (r.method !== undefined) line += ` http.method=${quoteIfNeeded(r.method)}`;
  if (r.host !== undefined) line += ` http.host=${quoteIfNeeded(r.host)}`;
  if (r.path !== undefined) line += ` http.path=${quoteIfNeeded(r.path)}`;
  if (r.version !== undefined) line += ` http.version=${r.version}`;
  if (r.status !== undefined) line += ` http.status=${r.status}`;
  if (r.grpcStatus !== undefined) line += ` grpc.status=${r.grpcStatus}`;
  if (r.sni !== undefined && r.host === undefined) line += ` tls.sni=${quoteIfNeeded(r.sni)}`;
  if (r.traceId !== undefined) line += ` trace.id=${quoteIfNeeded(r.traceId)}`;
  if (r.spanId !== undefined) line += ` span.id=${quoteIfNeeded(r.spanId)}`;
  if (r.jwtSubject !== undefined) line += ` jwt.sub=${quoteIfNeeded(r.jwtSubject)}`;
  line += ` protocol=${r.protocol}`;
  if (r.retryAttempt !== undefined && r.retryAttempt > 0) line += ` retry.attempt=${r.retryAttempt}`;
  if (r.error !== undefined) line += ` error=${quote(r.error)}`;
  if (r.reason !== undefined && r.reason !== "Upstream") line += ` reason=${r.reason}`;
  return `${line} bytes.received=${r.bytesReceived} bytes.sent=${r.bytesSent} duration=${durationText(r)}`;
}

/** What does not change from line to line as a rule, made again when it does. */
const begin = { time: Number.NaN, text: "" };
const place: { record: AccessRecord | undefined; text: string } = { record: undefined, text: "" };

/** All up to the request id. Many lines have the same time. */
function jsonBegin({ time }: AccessRecord): string {
  if (time === begin.time) return begin.text;
  begin.time = time;
  begin.text = `{"level":"info","time":"${formatTimestamp(time)}","scope":"request"`;
  return begin.text;
}

/** From gateway to endpoint. The names are those of the configuration, so comparing them compares pointers. */
function jsonPlace(r: AccessRecord): string {
  const last = place.record;
  if (
    last !== undefined &&
    r.endpoint === last.endpoint &&
    r.route === last.route &&
    r.routeRule === last.routeRule &&
    r.listener === last.listener &&
    r.gateway === last.gateway
  )
    return place.text;
  let text = "";
  if (r.gateway !== undefined) text += `,"gateway":${quote(r.gateway)}`;
  if (r.listener !== undefined) text += `,"listener":${quote(r.listener)}`;
  if (r.routeRule !== undefined) text += `,"route_rule":${quote(r.routeRule)}`;
  if (r.route !== undefined) text += `,"route":${quote(r.route)}`;
  if (r.endpoint !== undefined) text += `,"endpoint":${quote(r.endpoint)}`;
  place.record = r;
  place.text = text;
  return text;
}
function formatJson(r: AccessRecord): string {
  let line = jsonBegin(r);
  if (r.requestId !== undefined) line += `,"request.id":${quote(r.requestId)}`;
  line += jsonPlace(r);
  if (r.source !== undefined) line += `,"src.addr":${quote(r.source)}`;
  if (r.method !== undefined) line += `,"http.method":${quote(r.method)}`;
  if (r.host !== undefined) line += `,"http.host":${quote(r.host)}`;
  if (r.path !== undefined) line += `,"http.path":${quote(r.path)}`;
  if (r.version !== undefined) line += `,"http.version":"${r.version}"`;
  if (r.status !== undefined) line += `,"http.status":${r.status}`;
  if (r.grpcStatus !== undefined) line += `,"grpc.status":${r.grpcStatus}`;
  if (r.sni !== undefined && r.host === undefined) line += `,"tls.sni":${quote(r.sni)}`;
  if (r.traceId !== undefined) line += `,"trace.id":${quote(r.traceId)}`;
  if (r.spanId !== undefined) line += `,"span.id":${quote(r.spanId)}`;
  if (r.jwtSubject !== undefined) line += `,"jwt.sub":${quote(r.jwtSubject)}`;
  line += `,"protocol":"${r.protocol}"`;
  if (r.retryAttempt !== undefined && r.retryAttempt > 0) line += `,"retry.attempt":${r.retryAttempt}`;
  if (r.error !== undefined) line += `,"error":${quote(r.error)}`;
  if (r.reason !== undefined && r.reason !== "Upstream") line += `,"reason":"${r.reason}"`;
  return `${line},"bytes.received":${r.bytesReceived},"bytes.sent":${r.bytesSent},"duration":${roundedMs(r)}}`;
}

/** The same fields as data, in the same order, without time, level and scope. Fields that the line omits are undefined. */
export function recordFields(r: AccessRecord): Record<string, unknown> {
  return {
    "request.id": r.requestId,
    gateway: r.gateway,
    listener: r.listener,
    route_rule: r.routeRule,
    route: r.route,
    endpoint: r.endpoint,
    "src.addr": r.source,
    "http.method": r.method,
    "http.host": r.host,
    "http.path": r.path,
    "http.version": r.version,
    "http.status": r.status,
    "grpc.status": r.grpcStatus,
    "tls.sni": r.host === undefined ? r.sni : undefined,
    "trace.id": r.traceId,
    "span.id": r.spanId,
    "jwt.sub": r.jwtSubject,
    protocol: r.protocol,
    "retry.attempt": r.retryAttempt === 0 ? undefined : r.retryAttempt,
    error: r.error,
    reason: r.reason === "Upstream" ? undefined : r.reason,
    "bytes.received": r.bytesReceived,
    "bytes.sent": r.bytesSent,
    duration: roundedMs(r),
  };
}

/** The duration in a text line: whole milliseconds. */
export function durationText({ durationMs }: AccessRecord): string {
  return `${Math.round(durationMs)}ms`;
}

/** Milliseconds with three decimals. */
function roundedMs({ durationMs }: AccessRecord): number {
  return Math.round(durationMs * 1000) / 1000;
}
