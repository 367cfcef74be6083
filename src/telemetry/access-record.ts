import type { ErrorCode } from "../base/errors.ts";
import type { Origin } from "../base/origin.ts";
import type { RedactedTarget } from "../base/redaction.ts";

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
  readonly path?: RedactedTarget | undefined;
  /** Such as `HTTP/1.1`. */
  readonly version?: string | undefined;
  readonly status?: number | undefined;
  readonly grpcStatus?: number | undefined;
  /** TLS server name; logged only without `host`. */
  readonly sni?: string | undefined;
  /** Of the span, or else of the client's trace. */
  readonly traceId?: string | undefined;
  /** Of sampled requests. */
  readonly spanId?: string | undefined;
  readonly jwtSubject?: string | undefined;
  /** `http`, `tcp`, `tls` or `udp`. */
  readonly protocol: string;
  /** Number of the retry that produced the result; absent or 0 for the first attempt. */
  readonly retryAttempt?: number | undefined;
  readonly error?: string | undefined;
  /** Where what decided was written; the log has it in `error`. */
  readonly origin?: Origin | undefined;
  /** The code of `error`, such as `TG_ROUTE_NOT_FOUND`; not a field of its own. */
  readonly code?: ErrorCode | undefined;
  /** Why the gateway ended it; `Upstream` (the backend's own response) is not logged. */
  readonly reason?: string | undefined;
  /** What shadow policies would have denied, or could not decide: `authorization:deny …`. */
  readonly shadow?: readonly string[] | undefined;
  /** Bytes of the request body without framing; of a TCP connection, all bytes. */
  readonly bytesReceived: number;
  /** Bytes of the response body, likewise. */
  readonly bytesSent: number;
  readonly durationMs: number;
}

/** The fields of the line as data, in its order, without time, level and scope. Fields that the line omits are undefined. */
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
    shadow: r.shadow,
    "bytes.received": r.bytesReceived,
    "bytes.sent": r.bytesSent,
    duration: Math.round(r.durationMs * 1000) / 1000,
  };
}
