/** The configuration of the policies that deal with credentials, of clients and of the gateway. */

/** Reference 3.5, with what the provider's discovery document says. */
export interface Oidc {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly tokenEndpointAuth: "clientSecretBasic" | "clientSecretPost";
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

/** Reference 3.22. At most one of the first four; a secret is absent only when its file could not be read. */
export interface BackendAuth {
  readonly passthrough?: { readonly location: CredentialTarget };
  readonly key?: { readonly value?: string; readonly location: CredentialTarget };
  readonly jwtSign?: JwtSigning;
  readonly oauthTokenExchange?: TokenExchange;
  readonly credentials: readonly { readonly key?: string; readonly location: CredentialTarget }[];
}

export interface JwtSigning {
  /** Private key, PEM. */
  readonly key?: string;
  readonly algorithm?: string;
  readonly keyId?: string;
  readonly issuer?: string;
  readonly subject?: string;
  readonly audiences?: readonly string[];
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Milliseconds. */
  readonly expiration: number;
  readonly location: CredentialTarget;
}

/** RFC 8693. */
export interface TokenExchange {
  readonly tokenEndpoint: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly audience?: string;
  readonly resource?: string;
  readonly scopes: readonly string[];
  readonly subjectTokenType: string;
  readonly requestedTokenType?: string;
  readonly location: CredentialTarget;
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
