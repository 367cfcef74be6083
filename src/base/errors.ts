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
  | "ExtAuth"
  | "Authorization"
  | "ExtProc"
  | "RateLimit"
  | "UpstreamFailure"
  | "Overload";

interface ErrorSpec {
  readonly status: number;
  readonly reason: Reason;
  readonly blame: Blame;
  readonly message: string;
}

export const ERRORS = {
  TG_BIND_NOT_FOUND: { status: 404, reason: "NotFound", blame: "client", message: "bind not found" },
  TG_LISTENER_NOT_FOUND: { status: 404, reason: "NotFound", blame: "client", message: "listener not found" },
  TG_ROUTE_NOT_FOUND: { status: 404, reason: "NotFound", blame: "client", message: "route not found" },
  TG_MISDIRECTED: { status: 421, reason: "NotFound", blame: "client", message: "misdirected request" },
  TG_NO_BACKENDS: { status: 500, reason: "NoHealthyBackend", blame: "config", message: "no valid backends" },
  TG_BACKEND_MISSING: { status: 500, reason: "NoHealthyBackend", blame: "config", message: "backend does not exist" },
  TG_BACKEND_TYPE: { status: 500, reason: "NoHealthyBackend", blame: "config", message: "invalid backend type" },
  TG_DELEGATION_CYCLE: { status: 500, reason: "Internal", blame: "config", message: "route delegation cycle detected" },
  TG_NO_HEALTHY_BACKENDS: {
    status: 503,
    reason: "NoHealthyBackend",
    blame: "upstream",
    message: "no healthy backends",
  },
  TG_DNS_FAILED: {
    status: 503,
    reason: "NoHealthyBackend",
    blame: "upstream",
    message: "backends required DNS resolution which failed",
  },
  TG_ADDRESS_REFUSED: {
    status: 503,
    reason: "NoHealthyBackend",
    blame: "config",
    message: "backend address not allowed",
  },
  TG_LOOP: { status: 508, reason: "Internal", blame: "config", message: "loop detected" },
  TG_POOL_FULL: {
    status: 503,
    reason: "UpstreamFailure",
    blame: "upstream",
    message: "too many requests to the backend",
  },
  TG_UPSTREAM_FAILED: { status: 503, reason: "UpstreamFailure", blame: "upstream", message: "upstream call failed" },
  TG_UPSTREAM_TIMEOUT: { status: 504, reason: "Timeout", blame: "upstream", message: "upstream call timeout" },
  TG_REQUEST_TIMEOUT: { status: 504, reason: "Timeout", blame: "upstream", message: "request timeout" },
  TG_DEADLINE_EXCEEDED: { status: 504, reason: "Timeout", blame: "upstream", message: "deadline exceeded" },
  TG_UPGRADE_MISMATCH: { status: 502, reason: "Internal", blame: "upstream", message: "request upgrade failed" },
  TG_FILTER_FAILED: { status: 500, reason: "Internal", blame: "config", message: "failed to apply filters" },
  TG_METHOD_NOT_ALLOWED: { status: 405, reason: "Internal", blame: "client", message: "method not allowed" },
  TG_INVALID_REQUEST: { status: 400, reason: "InvalidRequest", blame: "client", message: "invalid request" },
  TG_CLIENT_TIMEOUT: { status: 408, reason: "InvalidRequest", blame: "client", message: "request timeout" },
  TG_BODY_TOO_LARGE: { status: 413, reason: "InvalidRequest", blame: "client", message: "content too large" },
  TG_RESPONSE_TOO_LARGE: {
    status: 502,
    reason: "UpstreamFailure",
    blame: "upstream",
    message: "response content too large",
  },
  TG_URI_TOO_LONG: { status: 414, reason: "InvalidRequest", blame: "client", message: "URI too long" },
  TG_HEAD_TOO_LARGE: {
    status: 431,
    reason: "InvalidRequest",
    blame: "client",
    message: "request header fields too large",
  },
  TG_UNKNOWN_CODING: { status: 501, reason: "InvalidRequest", blame: "client", message: "unknown transfer coding" },
  TG_UNKNOWN_PROTOCOL: { status: 501, reason: "InvalidRequest", blame: "client", message: "unknown protocol" },
  TG_HTTP_VERSION: { status: 505, reason: "InvalidRequest", blame: "client", message: "HTTP version not supported" },
  TG_EXPECTATION_FAILED: { status: 417, reason: "InvalidRequest", blame: "client", message: "expectation failed" },
  TG_AUTHORIZATION: { status: 403, reason: "Authorization", blame: "client", message: "authorization failed" },
  TG_CSRF: { status: 403, reason: "Authorization", blame: "client", message: "CSRF validation failed" },
  TG_JWT_MISSING: {
    status: 401,
    reason: "JwtAuth",
    blame: "client",
    message: "authentication failure: no bearer token found",
  },
  TG_DOCUMENT_MISSING: {
    status: 503,
    reason: "UpstreamFailure",
    blame: "upstream",
    message: "a document that is needed to verify credentials is not available",
  },
  TG_JWT: { status: 401, reason: "JwtAuth", blame: "client", message: "authentication failure" },
  TG_BASIC_AUTH_MISSING: {
    status: 401,
    reason: "BasicAuth",
    blame: "client",
    message: "basic authentication failure: no basic authentication credentials found",
  },
  TG_BASIC_AUTH: {
    status: 401,
    reason: "BasicAuth",
    blame: "client",
    message: "basic authentication failure: invalid credentials",
  },
  TG_BASIC_AUTH_BUSY: {
    status: 503,
    reason: "BasicAuth",
    blame: "client",
    message: "basic authentication failure: too many passwords are being checked",
  },
  TG_API_KEY_MISSING: {
    status: 401,
    reason: "APIKeyAuth",
    blame: "client",
    message: "api key authentication failure: no API Key found",
  },
  TG_API_KEY: {
    status: 401,
    reason: "APIKeyAuth",
    blame: "client",
    message: "api key authentication failure: invalid credentials",
  },
  TG_OIDC: { status: 401, reason: "Oidc", blame: "client", message: "oidc failure" },
  TG_EXT_AUTHZ: { status: 403, reason: "ExtAuth", blame: "client", message: "external authorization failed" },
  TG_EXT_PROC: { status: 500, reason: "ExtProc", blame: "upstream", message: "ext_proc failed" },
  TG_RATE_LIMITED: { status: 429, reason: "RateLimit", blame: "client", message: "rate limit exceeded" },
  TG_RATE_LIMIT_SERVICE: { status: 500, reason: "RateLimit", blame: "upstream", message: "rate limit failed" },
  TG_BACKEND_AUTH: {
    status: 500,
    reason: "UpstreamFailure",
    blame: "upstream",
    message: "backend authentication failed",
  },
  TG_OVERLOADED: { status: 503, reason: "Overload", blame: "internal", message: "the gateway is overloaded" },
  TG_BUFFERS_FULL: { status: 503, reason: "Overload", blame: "internal", message: "too many buffered bodies" },
  TG_EXPRESSIONS_EXCEEDED: {
    status: 503,
    reason: "Overload",
    blame: "config",
    message: "the expressions of the route use more than its share of the processor",
  },
  TG_CLIENT_GONE: { status: 499, reason: "ClientGone", blame: "client", message: "client closed the connection" },
  TG_SHUT_DOWN: { status: 503, reason: "Internal", blame: "internal", message: "the gateway shut down" },
  TG_INTERNAL: { status: 500, reason: "Internal", blame: "internal", message: "internal error" },
} as const satisfies Record<string, ErrorSpec>;

export type ErrorCode = keyof typeof ERRORS;

/** The response for an error. By its type it cannot carry the text of a cause. */
export interface ErrorAnswer {
  readonly code: ErrorCode;
  readonly status: number;
  /** Header fields, such as a challenge: lower-case names and values alternate. */
  readonly headers: readonly string[];
  /** What a service or the configuration says in place of the table's text, which undefined stands for. */
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
  /** The rule of a policy that decided: its position among those of all levels. */
  readonly rule?: number | undefined;
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
}

/**
 * The one error class of the data plane. `message` is for the log and the trace: the table's text and, after a colon, `detail`.
 * The client gets `answer` only, which holds neither `detail` nor `cause` nor `why`. The last argument overrides status and body, and
 * adds headers.
 */
export class GatewayError extends Error {
  readonly answer: ErrorAnswer;
  /** For the access log, which shows it after `message`. */
  readonly why: Why | undefined;
  constructor(
    code: ErrorCode,
    detail?: string,
    cause?: unknown,
    { status = ERRORS[code].status, headers = [], body, why }: ErrorOptions = {},
  ) {
    super(detail === undefined ? ERRORS[code].message : `${ERRORS[code].message}: ${detail}`, { cause });
    this.answer = { code, status, headers, body };
    this.why = why;
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

/** A thrown value as an Error: JavaScript can throw anything. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
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
