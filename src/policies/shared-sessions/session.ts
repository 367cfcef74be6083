/** Claims of a verified id token (OpenID Connect Core 2). */
export interface Claims {
  readonly sub: string;
  /** Unix seconds. */
  readonly exp: number;
  readonly [claim: string]: unknown;
}

/** A user whom `oidc` has logged in, as the browser keeps it, sealed. Times are Unix seconds. */
export interface Session {
  /** Identifies the login: 12 random bytes. */
  readonly id: string;
  /** Identifies this state of the session; each refresh makes a new one: 12 random bytes. */
  readonly generation: string;
  readonly began: number;
  readonly claims: Claims;
  /** When its tokens were issued, and when the access token expires. */
  readonly issued: number;
  readonly expires: number;
  readonly refresh?: string | undefined;
  /** The access token; only if backends get it. */
  readonly access?: string | undefined;
  /** The id token; only if a logout sends it to the provider. */
  readonly hint?: string | undefined;
}
