/** The configuration of each policy kind after validation; what `src/policies/<kind>/` compiles. */
import type { BackendTls } from "../tls/tls-settings.ts";
import type { BackendHttp, BackendTcp, BackendTunnel, Health, SessionAffinity } from "../upstream/settings.ts";
import type { Target } from "../upstream/target.ts";
import type { Conditional } from "./conditional/schema.ts";

/** `T` of `requestHeaderModifier` and `responseHeaderModifier` (reference 3.13); applied in the order add, set, remove. */
export interface HeaderModifier {
  readonly add?: Readonly<Record<string, string>>;
  readonly set?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
}

/** One side of Transformations; the texts are CEL. */
export interface Transformation {
  readonly add?: Readonly<Record<string, string>>;
  readonly set?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
  readonly replace?: string;
  readonly body?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Reference 3.10. */
export interface Transformations {
  readonly request?: Transformation;
  readonly response?: Transformation;
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

/** Reference 3.5, with what the provider's discovery document says. */
export interface Oidc {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly tokenEndpointAuth: "clientSecretBasic" | "clientSecretPost";
  /** The provider announces that callbacks have `iss` (RFC 9207 3). */
  readonly callbackNamesIssuer: boolean;
  /** The provider's key set (RFC 7517), as JSON text. */
  readonly jwks: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Absolute; its path is where browsers come back to. */
  readonly redirectURI: string;
  /** Besides `openid`. */
  readonly scopes: readonly string[];
}

/** Where a request carries a credential (reference 3.4). */
export type CredentialLocation = CredentialTarget | { readonly expression: string };

/** The places where the gateway can put one. */
export type CredentialTarget =
  /** `name` lower-case; `prefix` is compared without regard to case. */
  | { readonly header: { readonly name: string; readonly prefix: string } }
  | { readonly queryParameter: { readonly name: string } }
  | { readonly cookie: { readonly name: string } };

/** `optional`: who shows no credential passes; `permissive`: whoever shows a wrong one too, as if there were none. */
export type AuthenticationMode = "strict" | "optional" | "permissive";

/** Reference 3.4: one issuer or several. */
export type JwtAuth = {
  readonly mode: AuthenticationMode;
  readonly location: CredentialLocation;
} & (JwtProvider | { readonly providers: readonly JwtProvider[] });

export interface JwtProvider {
  readonly issuer: string;
  /** One of them has to be in `aud`; absent or empty: whatever it is. */
  readonly audiences?: readonly string[];
  /** Key set (RFC 7517) as JSON. Absent as long as it has not been fetched: no token is valid. */
  readonly jwks?: string;
  readonly jwtValidationOptions?: { readonly requiredClaims: readonly string[] };
}

/** Reference 3.6. */
export interface BasicAuth {
  /** `user:hash`, a line each. */
  readonly htpasswd?: string;
  readonly realm: string;
  readonly mode: "strict" | "optional";
  readonly authorizationLocation: CredentialLocation;
}

/** Reference 3.22. At most one way besides `credentials`; a secret is absent only when its file could not be read. */
export interface BackendAuth {
  readonly passthrough?: { readonly location: CredentialTarget };
  readonly key?: { readonly value?: string; readonly location: CredentialTarget };
  readonly jwtSign?: JwtSigning;
  readonly oauthTokenExchange?: TokenExchange;
  readonly crossAppAccess?: CrossAppAccess;
  readonly credentials: readonly { readonly key?: string; readonly location: CredentialTarget }[];
}

export type SigningAlgorithm = "RS256" | "RS384" | "RS512" | "PS256" | "ES256" | "ES384";

/** A private key and how it signs. */
export interface Signing {
  /** PEM. */
  readonly signingKey?: string;
  readonly alg: SigningAlgorithm;
  readonly kid?: string;
}

export interface JwtSigning extends Signing {
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Milliseconds. */
  readonly ttl: number;
  readonly location: CredentialTarget;
}

/** How the gateway authenticates itself to a token endpoint. */
export type ClientAuth = { readonly clientId: string } & (
  | { readonly method: "clientSecretBasic" | "clientSecretPost"; readonly clientSecret?: string }
  | ({
      readonly method: "privateKeyJwt";
      readonly assertionAudience: string;
      /** PEM. */
      readonly certificate?: string;
      readonly certificateHeader: "x5c" | "x5t#S256";
    } & Signing)
);

/** Credentials that need no exchange: those that token endpoints may ask for. */
export type BasicBackendAuth = Omit<BackendAuth, "oauthTokenExchange" | "crossAppAccess">;

/** How a token endpoint is called. */
export interface TokenEndpointPolicies {
  readonly backendTLS?: BackendTls;
  readonly http?: BackendHttp;
  readonly tcp?: BackendTcp;
  readonly backendTunnel?: BackendTunnel;
  readonly backendAuth?: BasicBackendAuth;
  readonly requestHeaderModifier?: HeaderModifier;
  readonly transformations?: Transformations;
}

/** An OAuth 2.0 token endpoint. */
export interface TokenEndpoint {
  readonly target: Target;
  readonly policies?: TokenEndpointPolicies;
  readonly path: string;
  readonly clientAuth?: ClientAuth;
  /** Milliseconds for one call. */
  readonly timeout: number;
}

/** A token of the client, and its type as RFC 8693 3 names it. */
export interface TokenSource {
  readonly source: CredentialLocation;
  readonly tokenType: string;
}

export interface TokenCache {
  /** 0 = nothing is kept. */
  readonly maxEntries: number;
  /** Milliseconds for tokens that come without `expires_in`. */
  readonly defaultTtl: number;
}

/** RFC 8693, or RFC 7523 with `jwtBearer`. */
export interface TokenExchange extends TokenEndpoint {
  readonly grantType: "tokenExchange" | "jwtBearer";
  readonly subjectToken: TokenSource;
  readonly actorToken?: TokenSource & { readonly enforceMayAct: boolean };
  readonly audiences: readonly string[];
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
  readonly requestedTokenType?: string;
  /** Name → CEL. */
  readonly additionalParams: Readonly<Record<string, string>>;
  readonly authorizationLocation: CredentialTarget;
  readonly cache: TokenCache;
}

/** Two exchanges: an identity assertion of the provider (ID-JAG), and for that an access token of the resource's server. */
export interface CrossAppAccess {
  readonly identityProvider: TokenEndpoint;
  readonly resourceAuthorizationServer: TokenEndpoint;
  readonly audience: string;
  readonly resources: readonly string[];
  readonly scopes: readonly string[];
  /** Absent: `scopes`. */
  readonly accessTokenScopes?: readonly string[];
  readonly subjectToken: TokenSource;
  readonly cache: TokenCache;
}

export interface ApiKey {
  /** SHA-256 of the key, hexadecimal in lower case. */
  readonly hash: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Reference 3.7. */
export interface ApiKeyAuth {
  readonly keys: readonly ApiKey[];
  readonly mode: AuthenticationMode;
  readonly location: CredentialLocation;
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

/** What is configured for a kind; includes lists of alternatives. */
export type PolicyConfig<Kind extends PolicyKind> = NonNullable<PolicySet[Kind]>;
