/** The configuration of the policies that deal with credentials, of clients and of the gateway. */
import type { BackendHttp, BackendTcp, BackendTls, BackendTunnel } from "./connections.ts";
import type { HeaderModifier } from "./headers.ts";
import type { Target } from "./target.ts";
import type { Transformations } from "./transformations.ts";

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
