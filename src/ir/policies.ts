/** The configuration of each policy kind after validation; what `src/policies/<kind>/` compiles. */
import type { ApiKeyAuth, BackendAuth, BasicAuth, JwtAuth, Oidc } from "./authentication.ts";
import type { BackendHttp, BackendTcp, BackendTls, BackendTunnel } from "./connections.ts";
import type { HeaderModifier } from "./headers.ts";
import type { Target } from "./target.ts";
import type { Transformations } from "./transformations.ts";

export type {
  ApiKey,
  ApiKeyAuth,
  AuthenticationMode,
  BackendAuth,
  BasicAuth,
  BasicBackendAuth,
  ClientAuth,
  CredentialLocation,
  CredentialTarget,
  CrossAppAccess,
  JwtAuth,
  JwtProvider,
  JwtSigning,
  Oidc,
  Signing,
  TokenCache,
  TokenEndpoint,
  TokenEndpointPolicies,
  TokenExchange,
  TokenSource,
} from "./authentication.ts";
export type { BackendHttp, BackendTcp, BackendTls, BackendTunnel, HttpVersion } from "./connections.ts";
export type { HeaderModifier } from "./headers.ts";
export type { Transformation, Transformations } from "./transformations.ts";

/** Alternatives: the first whose CEL is true applies; only the last may have none (reference 1.11). */
export interface Conditional<Entry extends object> {
  readonly conditional: readonly (Entry & { readonly condition?: string })[];
}

/** How a redirect or rewrite changes the authority; `auto` = the backend's hostname, `none` = leave it. */
export type AuthorityChange =
  | { readonly full: string }
  | { readonly host: string }
  | { readonly port: number }
  | "auto"
  | "none";

export type PathChange = { readonly full: string } | { readonly prefix: string };

/** Reference 3.15. */
export interface UrlRewrite {
  readonly authority?: AuthorityChange;
  readonly path?: PathChange;
}

/** Reference 3.14; `status` default 302. */
export interface RequestRedirect {
  readonly scheme?: "http" | "https";
  readonly authority?: AuthorityChange;
  readonly path?: PathChange;
  readonly status?: number;
}

/** Reference 3.12; `body` excludes `bodyExpression`. */
export interface DirectResponse {
  readonly status: number;
  /** Text, or bytes as numbers. */
  readonly body?: string | readonly number[];
  /** CEL over the request. */
  readonly bodyExpression?: string;
  /** Names to CEL over the request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Reference 3.17, milliseconds. */
export interface Timeout {
  readonly requestTimeout?: number;
  readonly backendRequestTimeout?: number;
}

/** Reference 3.18. */
export interface Retry {
  /** Further attempts after the first. */
  readonly attempts: number;
  /** Milliseconds before each further attempt, on average; 0 = none. */
  readonly backoff: number;
  /** Response statuses that are tried again. */
  readonly codes: readonly number[];
  /** CEL over the request: false = no retries. */
  readonly precondition?: string;
  /** CEL over request and response: true = try again. */
  readonly condition?: string;
}

/** Reference 3.3. */
export interface Authorization {
  readonly rules: readonly AuthorizationRule[];
}

export interface AuthorizationRule {
  readonly mode: "allow" | "deny" | "require";
  /** CEL over the request. */
  readonly expression: string;
}

/** Reference 3.20: a Go-style duration, or CEL that gives a duration or milliseconds. */
export interface Delay {
  readonly duration: string;
}

/** Reference 3.24. */
export interface Buffering {
  readonly request?: BufferedSide;
  readonly response?: BufferedSide;
}

export interface BufferedSide {
  /** Default: `maxBufferSize` of the frontend. */
  readonly maxBytes?: number;
  readonly failureMode: "failClosed" | "failOpen";
}

/** Reference 3.16. */
export interface Cors {
  /** `scheme://host[:port]` with `*` in the host, `null`, or `*` for all. */
  readonly allowOrigins: readonly string[];
  readonly allowMethods: readonly string[];
  readonly allowHeaders: readonly string[];
  readonly exposeHeaders: readonly string[];
  readonly allowCredentials: boolean;
  /** Milliseconds. */
  readonly maxAge?: number;
}

/** Reference 3.11. */
export interface Csrf {
  /** `scheme://host[:port]` */
  readonly additionalOrigins: readonly string[];
}

/** Reference 3.1; the limits are all checked, in order. */
export type LocalRateLimit = readonly LocalLimit[];

export interface LocalLimit {
  readonly maxTokens: number;
  readonly tokensPerFill: number;
  /** Milliseconds. */
  readonly fillInterval: number;
  readonly type: "requests" | "tokens";
  /** CEL: each of its values has a bucket of its own. */
  readonly key?: string;
}

/** A service that the gateway asks itself, and what of a backend's policies holds for that. */
export interface CalledService {
  readonly target: Target;
  readonly policies?: CallPolicies;
}

export interface CallPolicies
  extends Pick<PolicySet, "backendTLS" | "http" | "tcp" | "backendTunnel" | "backendAuth" | "requestHeaderModifier"> {
  /** Of the request alone. */
  readonly transformations?: Transformations;
}

/** Reference 3.8. */
export interface ExtAuthz extends CalledService {
  readonly protocol: { readonly grpc: ExtAuthzGrpc } | { readonly http: ExtAuthzHttp };
  /** When the service cannot be asked. */
  readonly failureMode: "allow" | "deny" | { readonly denyWithStatus: number };
  /** Lower-case; none: all for gRPC, `authorization` for HTTP. */
  readonly includeRequestHeaders: readonly string[];
  readonly includeRequestBody?: {
    readonly maxRequestBytes: number;
    readonly allowPartialMessage: boolean;
    readonly packAsBytes: boolean;
  };
  /** `ttl`: a Go-style duration, or CEL that gives one. */
  readonly cache?: { readonly key: readonly string[]; readonly ttl: string; readonly maxEntries: number };
  /** Milliseconds for one call. */
  readonly timeout: number;
}

export interface ExtAuthzGrpc {
  readonly context?: Readonly<Record<string, string>>;
  /** Name → CEL. */
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface ExtAuthzHttp {
  /** CEL for the path and query of the question. */
  readonly path?: string;
  /** CEL for where clients that are not allowed are sent. */
  readonly redirect?: string;
  /** CEL for the body of the question. */
  readonly body?: string;
  /** Headers of the answer that the backend gets too; lower-case. */
  readonly includeResponseHeaders: readonly string[];
  /** Header of the question → CEL. */
  readonly addRequestHeaders: Readonly<Record<string, string>>;
  /** Name → CEL over the answer, read by expressions as `extauthz.<name>`. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** `frontendPolicies.networkExtAuthz` (reference 1.10): the part of `extAuthz` that needs no request. */
export interface NetworkExtAuthz extends CalledService {
  readonly protocol:
    | { readonly grpc: ExtAuthzGrpc }
    | { readonly http: Pick<ExtAuthzHttp, "path" | "body" | "addRequestHeaders" | "metadata"> };
  /** When the service cannot be asked. */
  readonly failureMode: "allow" | "deny";
  readonly cache?: NonNullable<ExtAuthz["cache"]>;
  /** Milliseconds for one call. */
  readonly timeout: number;
}

/** Reference 3.2. */
export interface RemoteRateLimit extends CalledService {
  readonly domain: string;
  readonly descriptors: readonly RateLimitDescriptor[];
  /** When the service cannot be asked. */
  readonly failureMode: "failClosed" | "failOpen";
  /** Milliseconds for one call. */
  readonly timeout: number;
}

export interface RateLimitDescriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  /** CEL for how much a request counts. */
  readonly cost?: string;
  /** CEL that gives `{unit, requestsPerUnit}`. */
  readonly limitOverride?: string;
}

/** Reference 3.19; each place gets copies of its own share. */
export type RequestMirror = readonly Mirror[];

export interface Mirror extends CalledService {
  /** From 0 to 1. */
  readonly percentage: number;
}

/** Reference 3.9. */
export interface ExtProc extends CalledService {
  /** When the service fails. */
  readonly failureMode: "failClosed" | "failOpen";
  /** Namespace → name → CEL. */
  readonly metadataContext: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Name → CEL. */
  readonly requestAttributes: Readonly<Record<string, string>>;
  readonly responseAttributes: Readonly<Record<string, string>>;
  readonly processingOptions: ExtProcOptions;
  /** Milliseconds for the answer to one message. */
  readonly timeout: number;
}

export type ExtProcBodyMode = "none" | "buffered" | "bufferedPartial" | "fullDuplexStreamed";

export interface ExtProcOptions {
  readonly requestHeaderMode: "send" | "skip";
  readonly responseHeaderMode: "send" | "skip";
  readonly requestBodyMode: ExtProcBodyMode;
  readonly responseBodyMode: ExtProcBodyMode;
  readonly requestTrailerMode: "send" | "skip";
  readonly responseTrailerMode: "send" | "skip";
  readonly allowModeOverride: boolean;
}

/** Reference 3.26. */
export interface Health {
  /** CEL over request and response: true = the call has failed. */
  readonly unhealthyExpression?: string;
  /** Absent: nothing is evicted. */
  readonly eviction?: Eviction;
}

export interface Eviction {
  /** Milliseconds. */
  readonly duration?: number;
  /** From 0 to 1. */
  readonly restoreHealth?: number;
  readonly consecutiveFailures?: number;
  /** From 0 to 1. */
  readonly healthThreshold?: number;
}

/** Reference 3.27. */
export interface SessionAffinity {
  /** CEL over the request for a string or bytes. */
  readonly source: string;
}

/** One value per kind; an absent key costs nothing at run time. */
export interface PolicySet {
  readonly requestHeaderModifier?: HeaderModifier;
  readonly responseHeaderModifier?: HeaderModifier;
  readonly urlRewrite?: UrlRewrite;
  readonly requestRedirect?: RequestRedirect;
  readonly directResponse?: DirectResponse | Conditional<DirectResponse>;
  readonly timeout?: Timeout;
  readonly cors?: Cors;
  readonly csrf?: Csrf;
  readonly requestMirror?: RequestMirror;
  readonly localRateLimit?: LocalRateLimit | Conditional<LocalLimit>;
  readonly transformations?: Transformations | Conditional<Transformations>;
  readonly retry?: Retry;
  readonly extProc?: ExtProc | Conditional<ExtProc>;
  readonly extAuthz?: ExtAuthz | Conditional<ExtAuthz>;
  readonly remoteRateLimit?: RemoteRateLimit | Conditional<RemoteRateLimit>;
  readonly oidc?: Oidc;
  readonly jwtAuth?: JwtAuth;
  readonly basicAuth?: BasicAuth;
  readonly apiKey?: ApiKeyAuth;
  readonly backendAuth?: BackendAuth;
  readonly authorization?: Authorization;
  readonly backendTLS?: BackendTls;
  readonly http?: BackendHttp;
  readonly tcp?: BackendTcp;
  readonly backendTunnel?: BackendTunnel;
  readonly delay?: Delay;
  readonly buffer?: Buffering;
  readonly health?: Health;
  readonly sessionAffinity?: SessionAffinity;
}

export type PolicyKind = keyof PolicySet;
