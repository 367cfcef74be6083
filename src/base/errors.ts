/**
 * The closed table of errors a request can end with: HTTP status, the `reason` label of metrics and
 * access logs, who is to blame, and the body text that the client sees (reference 2.4).
 */
export type Blame = "client" | "config" | "upstream" | "internal";

/** Values of the `reason` label in metrics and access logs (reference 2.4). */
export type Reason =
  | "Upstream"
  | "DirectResponse"
  | "NotFound"
  | "NoHealthyBackend"
  | "Internal"
  | "InvalidRequest"
  | "Timeout"
  | "JwtAuth"
  | "Oidc"
  | "BasicAuth"
  | "APIKeyAuth"
  | "ExtAuth"
  | "Authorization"
  | "ExtProc"
  | "RateLimit"
  | "UpstreamFailure";

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
  TG_SERVICE_NOT_FOUND: { status: 500, reason: "NotFound", blame: "config", message: "service not found" },
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
  TG_UPSTREAM_FAILED: { status: 503, reason: "UpstreamFailure", blame: "upstream", message: "upstream call failed" },
  TG_UPSTREAM_TIMEOUT: { status: 504, reason: "Timeout", blame: "upstream", message: "upstream call timeout" },
  TG_REQUEST_TIMEOUT: { status: 504, reason: "Timeout", blame: "upstream", message: "request timeout" },
  TG_UPGRADE_MISMATCH: { status: 502, reason: "Internal", blame: "upstream", message: "request upgrade failed" },
  TG_FILTER_FAILED: { status: 500, reason: "Internal", blame: "config", message: "failed to apply filters" },
  TG_METHOD_NOT_ALLOWED: { status: 405, reason: "Internal", blame: "client", message: "method not allowed" },
  TG_INVALID_REQUEST: { status: 400, reason: "InvalidRequest", blame: "client", message: "invalid request" },
  TG_CLIENT_TIMEOUT: { status: 408, reason: "InvalidRequest", blame: "client", message: "request timeout" },
  TG_BODY_TOO_LARGE: { status: 413, reason: "InvalidRequest", blame: "client", message: "content too large" },
  TG_URI_TOO_LONG: { status: 414, reason: "InvalidRequest", blame: "client", message: "URI too long" },
  TG_HEAD_TOO_LARGE: {
    status: 431,
    reason: "InvalidRequest",
    blame: "client",
    message: "request header fields too large",
  },
  TG_UNKNOWN_CODING: { status: 501, reason: "InvalidRequest", blame: "client", message: "unknown transfer coding" },
  TG_HTTP_VERSION: { status: 505, reason: "InvalidRequest", blame: "client", message: "HTTP version not supported" },
  TG_EXPECTATION_FAILED: { status: 417, reason: "InvalidRequest", blame: "client", message: "expectation failed" },
  TG_AUTHORIZATION: { status: 403, reason: "Authorization", blame: "client", message: "authorization failed" },
  TG_CSRF: { status: 403, reason: "Authorization", blame: "client", message: "CSRF validation failed" },
  TG_JWT: { status: 401, reason: "JwtAuth", blame: "client", message: "authentication failure" },
  TG_BASIC_AUTH: { status: 401, reason: "BasicAuth", blame: "client", message: "basic authentication failure" },
  TG_API_KEY: { status: 401, reason: "APIKeyAuth", blame: "client", message: "api key authentication failure" },
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
  TG_CLIENT_GONE: { status: 499, reason: "Internal", blame: "client", message: "client closed the connection" },
  TG_INTERNAL: { status: 500, reason: "Internal", blame: "internal", message: "internal error" },
} as const satisfies Record<string, ErrorSpec>;

export type ErrorCode = keyof typeof ERRORS;

/** What differs from the table in one case: a challenge's header, another status. */
export interface ErrorAnswer {
  readonly status?: number;
  /** Flat, names in lower case. */
  readonly headers?: readonly string[];
}

/**
 * The one error class of the data plane. `detail` is appended to the table's message as `: detail` and may reach the
 * client; `cause` goes to logs and never to the wire; `answer` adds to the response what depends on the case.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly #answer: ErrorAnswer;
  constructor(code: ErrorCode, detail?: string, cause?: unknown, answer: ErrorAnswer = {}) {
    super(detail === undefined ? ERRORS[code].message : `${ERRORS[code].message}: ${detail}`, { cause });
    this.code = code;
    this.#answer = answer;
  }
  get status(): number {
    return this.#answer.status ?? ERRORS[this.code].status;
  }
  /** Header fields of the response, flat. */
  get headers(): readonly string[] {
    return this.#answer.headers ?? [];
  }
  get reason(): Reason {
    return ERRORS[this.code].reason;
  }
}

/** What was thrown, as an Error: JavaScript can throw anything. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
