import type { Names } from "./sensitive-names.ts";

/**
 * The closed table of errors that a request can end with: HTTP status, the `reason` label of metrics and access logs, the party
 * to blame, and the message, which is the whole body of the response (docs/errors.md). Causes may hold internal names and
 * addresses, so they go to the log and the trace only.
 */
type Blame = "client" | "config" | "upstream" | "internal";

/** Values of the `reason` label in metrics and access logs (docs/errors.md). */
export type Reason =
  | "Upstream"
  | "DirectResponse"
  | "NotFound"
  | "NoHealthyBackend"
  | "Internal"
  | "InvalidRequest"
  | "ClientGone"
  | "Timeout"
  | "JwtAuth"
  | "Oidc"
  | "BasicAuth"
  | "APIKeyAuth"
  | "Satisfy"
  | "ExtAuth"
  | "Authorization"
  | "ExtProc"
  | "RateLimit"
  | "ConcurrencyLimit"
  | "UpstreamFailure"
  | "Overload";

interface ErrorSpec {
  readonly status: number;
  readonly reason: Reason;
  readonly blame: Blame;
  readonly message: string;
}

const blamed =
  (blame: Blame) =>
  (status: number, reason: Reason, message: string): ErrorSpec => ({ status, reason, blame, message });
const client = blamed("client");
const config = blamed("config");
const upstream = blamed("upstream");
const internal = blamed("internal");

export const ERRORS = {
  TG_BIND_NOT_FOUND: client(404, "NotFound", "bind not found"),
  TG_LISTENER_NOT_FOUND: client(404, "NotFound", "listener not found"),
  TG_ROUTE_NOT_FOUND: client(404, "NotFound", "route not found"),
  TG_MISDIRECTED: client(421, "NotFound", "misdirected request"),
  TG_NO_BACKENDS: config(500, "NoHealthyBackend", "no valid backends"),
  TG_BACKEND_MISSING: config(500, "NoHealthyBackend", "backend does not exist"),
  TG_BACKEND_TYPE: config(500, "NoHealthyBackend", "invalid backend type"),
  TG_DELEGATION_CYCLE: config(500, "Internal", "route delegation cycle detected"),
  TG_NO_HEALTHY_BACKENDS: upstream(503, "NoHealthyBackend", "no healthy backends"),
  TG_DNS_FAILED: upstream(503, "NoHealthyBackend", "backends required DNS resolution which failed"),
  TG_ADDRESS_REFUSED: config(503, "NoHealthyBackend", "backend address not allowed"),
  TG_LOOP: config(508, "Internal", "loop detected"),
  TG_POOL_FULL: upstream(503, "UpstreamFailure", "too many requests to the backend"),
  TG_UPSTREAM_FAILED: upstream(503, "UpstreamFailure", "upstream call failed"),
  TG_UPSTREAM_TIMEOUT: upstream(504, "Timeout", "upstream call timeout"),
  TG_REQUEST_TIMEOUT: upstream(504, "Timeout", "request timeout"),
  TG_DEADLINE_EXCEEDED: upstream(504, "Timeout", "deadline exceeded"),
  TG_UPGRADE_MISMATCH: upstream(502, "Internal", "request upgrade failed"),
  TG_FILTER_FAILED: config(500, "Internal", "failed to apply filters"),
  TG_METHOD_NOT_ALLOWED: client(405, "Internal", "method not allowed"),
  TG_INVALID_REQUEST: client(400, "InvalidRequest", "invalid request"),
  TG_CLIENT_TIMEOUT: client(408, "InvalidRequest", "request timeout"),
  TG_BODY_TOO_LARGE: client(413, "InvalidRequest", "content too large"),
  TG_RESPONSE_TOO_LARGE: upstream(502, "UpstreamFailure", "response content too large"),
  TG_URI_TOO_LONG: client(414, "InvalidRequest", "URI too long"),
  TG_HEAD_TOO_LARGE: client(431, "InvalidRequest", "request header fields too large"),
  TG_UNKNOWN_CODING: client(501, "InvalidRequest", "unknown transfer coding"),
  TG_UNKNOWN_PROTOCOL: client(501, "InvalidRequest", "unknown protocol"),
  TG_HTTP_VERSION: client(505, "InvalidRequest", "HTTP version not supported"),
  TG_EXPECTATION_FAILED: client(417, "InvalidRequest", "expectation failed"),
  TG_AUTHORIZATION: client(403, "Authorization", "authorization failed"),
  TG_CSRF: client(403, "Authorization", "CSRF validation failed"),
  TG_JWT_MISSING: client(401, "JwtAuth", "authentication failure: no bearer token found"),
  TG_DOCUMENT_MISSING: upstream(
    503,
    "UpstreamFailure",
    "a document that is needed to verify credentials is not available",
  ),
  TG_JWT: client(401, "JwtAuth", "authentication failure"),
  TG_BASIC_AUTH_MISSING: client(
    401,
    "BasicAuth",
    "basic authentication failure: no basic authentication credentials found",
  ),
  TG_BASIC_AUTH: client(401, "BasicAuth", "basic authentication failure: invalid credentials"),
  TG_BASIC_AUTH_BUSY: client(503, "BasicAuth", "basic authentication failure: too many passwords are being checked"),
  TG_API_KEY_MISSING: client(401, "APIKeyAuth", "api key authentication failure: no API Key found"),
  TG_API_KEY: client(401, "APIKeyAuth", "api key authentication failure: invalid credentials"),
  TG_OIDC: client(401, "Oidc", "oidc failure"),
  TG_SATISFY: client(401, "Satisfy", "authentication failure: no valid credentials found"),
  TG_EXT_AUTHZ: client(403, "ExtAuth", "external authorization failed"),
  TG_EXT_PROC_DENIED: client(403, "ExtProc", "denied by the processing service"),
  TG_EXT_PROC: upstream(500, "ExtProc", "ext_proc failed"),
  TG_RATE_LIMITED: client(429, "RateLimit", "rate limit exceeded"),
  TG_CONCURRENCY_LIMITED: client(429, "ConcurrencyLimit", "too many requests in progress"),
  TG_RATE_LIMIT_SERVICE: upstream(500, "RateLimit", "rate limit failed"),
  TG_BACKEND_AUTH: upstream(500, "UpstreamFailure", "backend authentication failed"),
  TG_OVERLOADED: internal(503, "Overload", "the gateway is overloaded"),
  TG_BUFFERS_FULL: internal(503, "Overload", "too many buffered bodies"),
  TG_EXPRESSIONS_EXCEEDED: config(
    503,
    "Overload",
    "the expressions of the route use more than its share of the processor",
  ),
  TG_CLIENT_GONE: client(499, "ClientGone", "client closed the connection"),
  TG_SHUT_DOWN: internal(503, "Internal", "the gateway shut down"),
  TG_INTERNAL: internal(500, "Internal", "internal error"),
} satisfies Record<string, ErrorSpec>;

export type ErrorCode = keyof typeof ERRORS;

/** The response for an error, which never says what caused it. */
export interface ErrorAnswer {
  readonly code: ErrorCode;
  readonly status: number;
  /** Header fields, such as a challenge: lower-case names and values alternate. */
  readonly headers: readonly string[];
  /** What a service or the configuration says. Default: the table's text. */
  readonly body?: string | Uint8Array | undefined;
}

/** What a log line may show of a request. */
export interface ShownValues {
  /** Headers (lower-case) whose values are secret. */
  readonly hiddenHeaders: Names;
  /** The value of a path in an expression, without secrets. `path`: the fields below the variable. */
  input(path: readonly string[], value: unknown): unknown;
}

/** The decision behind an error. */
export interface Explained {
  readonly text: string;
  /** The compiled route that decided, if no policy did. */
  readonly route?: { readonly digest: string };
}

/**
 * Explains an error. Called at most once, before anything of the request changes, and only if the text is shown. `after`: the verdict
 * that stands before the text, which need not say it again.
 */
export type Why = (shown: ShownValues, after?: "deny") => Explained;

interface ErrorOptions extends Partial<Omit<ErrorAnswer, "code">> {
  readonly why?: Why;
  /** The rule of a policy that decided: its position among those of all levels. */
  readonly rule?: number;
}

/**
 * The one error class of the data plane. `message` is for the log and the trace: the table's text and, after a colon, `detail`.
 * The client gets `answer` only, which holds neither `detail` nor `cause` nor `why`. The last argument overrides status and body, and
 * adds headers.
 */
export class GatewayError extends Error {
  readonly answer: ErrorAnswer;
  readonly detail: string | undefined;
  /** For the access log, which shows it after `message`. */
  readonly why: Why | undefined;
  /** For records and the access log: the rule of a policy that decided, as its position among those of all levels. */
  readonly rule: number | undefined;
  constructor(
    code: ErrorCode,
    detail?: string,
    cause?: unknown,
    { status = ERRORS[code].status, headers = [], body, why, rule }: ErrorOptions = {},
  ) {
    super(detail === undefined ? ERRORS[code].message : `${ERRORS[code].message}: ${detail}`, { cause });
    this.detail = detail;
    this.answer = body === undefined ? { code, status, headers } : { code, status, headers, body };
    this.why = why;
    this.rule = rule;
  }
  get code(): ErrorCode {
    return this.answer.code;
  }
  get status(): number {
    return this.answer.status;
  }
  /** Header fields of the response: names and values alternate. */
  get headers(): readonly string[] {
    return this.answer.headers;
  }
  get reason(): Reason {
    return ERRORS[this.code].reason;
  }
}

/** The code of an error of Node.js, the system or OpenSSL, such as `ECONNREFUSED`. */
export function codeOf(thrown: unknown): string | undefined {
  const { code } = (thrown ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/** A thrown value as an Error: JavaScript can throw anything. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The message of an error, followed by that of its cause. */
export function withCause({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

/**
 * The message of a thrown value, for a sentence such as `cannot read the file: …`. Of OpenSSL's errors it is the reason alone, without
 * the error number and the line of its source code.
 */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { library, reason } = thrown as { readonly library?: unknown; readonly reason?: unknown };
  return typeof library === "string" && typeof reason === "string" ? reason : thrown.message;
}
