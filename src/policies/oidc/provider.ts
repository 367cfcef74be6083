import { createHash } from "node:crypto";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey, jwtVerify } from "jose";
import * as oauth from "oauth4webapi";
import { PolicyError } from "../contract/policy-error.ts";
import type { Claims, Session } from "../shared-sessions/session.ts";
import { callFailure, LoginError, reason, statusFailure, unreadable } from "./failure.ts";
import type { Oidc } from "./schema.ts";
import type { Tokens } from "./session.ts";
import type { TokenFetch } from "./token-call.ts";
import type { Transaction } from "./transaction.ts";

/** Asymmetric algorithms only: a key set is public, and with an HMAC key in it anyone could sign tokens. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** Seconds of clock skew that are tolerated. */
const CLOCK_TOLERANCE = 30;

/** Seconds after which a logout token is too old. Until then its `jti` is remembered. */
export const LOGOUT_TOKEN_AGE = 300;
const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";
const LOGOUT_TYPES = new Set(["logout+jwt", "jwt"]);

/** What a verified logout token says: all sessions of `sub`, or the one with `sid` if it is there. */
interface LogoutToken {
  readonly sub: string | undefined;
  readonly sid: string | undefined;
  readonly jti: string;
}

/** The protocol with one provider: oauth4webapi for requests and callbacks, jose for ID tokens. */
export class Provider {
  readonly #config: Oidc;
  readonly #server: oauth.AuthorizationServer;
  readonly #client: oauth.Client;
  readonly #authentication: oauth.ClientAuth;
  readonly #keys: JWTVerifyGetKey;
  readonly #scope: string;
  /** Called when a token of the provider names a key that is not in its set. */
  onUnknownKey: () => void = () => {};

  /** Throws PolicyError for an invalid key set. */
  constructor(config: Oidc) {
    this.#config = config;
    this.#server = {
      issuer: config.issuer,
      authorization_endpoint: config.authorizationEndpoint,
      token_endpoint: config.tokenEndpoint,
      id_token_signing_alg_values_supported: ALGORITHMS,
      // With this field, the library requires `iss` in callbacks (RFC 9207).
      authorization_response_iss_parameter_supported: config.callbackNamesIssuer,
    };
    this.#client = { client_id: config.clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE };
    this.#authentication =
      config.tokenEndpointAuth === "clientSecretPost"
        ? oauth.ClientSecretPost(config.clientSecret)
        : oauth.ClientSecretBasic(config.clientSecret);
    this.#keys = readKeys(config.jwks);
    this.#scope = [...new Set(["openid", ...config.scopes])].join(" ");
  }

  /** The authorization request as a URL (OpenID Connect Core, section 3.1.2.1; RFC 7636, section 4.3). */
  authorizationUrl({ state, nonce, verifier }: Transaction): string {
    const { authorizationEndpoint, clientId, redirectURI } = this.#config;
    const url = new URL(authorizationEndpoint);
    const parameters = {
      response_type: "code",
      client_id: clientId,
      redirect_uri: redirectURI,
      scope: this.#scope,
      state,
      nonce,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  /** Exchanges the code of a callback for tokens and verifies the ID token. Throws TG_OIDC, whose messages contain no token. */
  async redeem(
    callback: URLSearchParams,
    transaction: Transaction,
    fetch: TokenFetch,
  ): Promise<Tokens & Required<Pick<Tokens, "id">>> {
    const response = await this.#exchange(this.#checkCallback(callback, transaction), transaction, fetch);
    const token = response.id_token ?? "";
    const claims = await this.#verify(token);
    if (claims.nonce !== transaction.nonce) throw new LoginError("nonceMismatch");
    return { ...tokensOf(response), id: { token, claims } };
  }

  /**
   * Exchanges a refresh token for new tokens (OpenID Connect Core, section 12.2). Throws TG_OIDC: `refreshRefused` if the provider
   * does not accept the token any more.
   */
  async refresh({ claims, refresh = "" }: Session, fetch: TokenFetch): Promise<Tokens> {
    let response: oauth.TokenEndpointResponse;
    try {
      const options = { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true };
      response = await oauth.processRefreshTokenResponse(
        this.#server,
        this.#client,
        await oauth.refreshTokenGrantRequest(this.#server, this.#client, this.#authentication, refresh, options),
      );
    } catch (error) {
      const failure = this.#exchangeFailure(error);
      if (failure instanceof LoginError && failure.problem === "codeRejected")
        throw new LoginError("refreshRefused", failure.cause);
      throw failure;
    }
    const { id_token: token } = response;
    if (token === undefined) return tokensOf(response);
    const renewed = await this.#verify(token);
    // The session must not become that of another user.
    if (renewed.sub !== claims.sub) throw new LoginError("refreshRefused", new Error("the id token is another user's"));
    return { ...tokensOf(response), id: { token, claims: { ...renewed, ...sidOf(renewed, claims) } } };
  }

  /**
   * Throws TG_OIDC if the callback does not name this provider as `iss`, where the provider announces that its callbacks do. Stops
   * mix-up attacks, where the code of one provider is sent to another (RFC 9207, section 2.4).
   */
  requireIssuer(callback: URLSearchParams): void {
    const named = callback.getAll("iss");
    if (named.length === 0 && !this.#config.callbackNamesIssuer) return;
    if (named.length !== 1 || named[0] !== this.#config.issuer)
      throw new LoginError("invalidCallback", new Error("the callback does not name the provider as its iss"));
  }

  /** Where a logout ends the session at the provider (RP-Initiated Logout 1.0, section 2); undefined if it has no such place. */
  logoutUrl(hint: string | undefined, returnTo: string | undefined): string | undefined {
    const { endSessionEndpoint, clientId } = this.#config;
    if (endSessionEndpoint === undefined) return undefined;
    const url = new URL(endSessionEndpoint);
    url.searchParams.set("client_id", clientId);
    if (hint !== undefined) url.searchParams.set("id_token_hint", hint);
    if (returnTo !== undefined) url.searchParams.set("post_logout_redirect_uri", returnTo);
    return url.href;
  }

  /** Verifies a logout token (Back-Channel Logout 1.0, section 2.6). Throws TG_OIDC with 400. */
  async verifyLogoutToken(token: string): Promise<LogoutToken> {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, this.#keys, {
        ...this.#expected,
        maxTokenAge: LOGOUT_TOKEN_AGE,
        requiredClaims: ["iat", "jti", "events"],
      });
      // An id token that is presented as a logout token has another type, a nonce, or no such event.
      if (!LOGOUT_TYPES.has((protectedHeader.typ ?? "jwt").toLowerCase().replace(/^application\//, "")))
        throw new Error(`its type is ${JSON.stringify(protectedHeader.typ)}`);
      const { sub, sid, jti = "", events, nonce } = payload;
      if (nonce !== undefined) throw new Error("it has a nonce");
      if (!isObject(events) || !isObject(events[LOGOUT_EVENT])) throw new Error("it is not about a logout");
      // The library checks only that they are there.
      if (typeof jti !== "string") throw new Error("its jti is not a string");
      if (sub !== undefined && typeof sub !== "string") throw new Error("its sub is not a string");
      if (sid !== undefined && typeof sid !== "string") throw new Error("its sid is not a string");
      if (sub === undefined && sid === undefined) throw new Error("it names neither a user nor a session");
      return { sub, sid, jti };
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) this.onUnknownKey();
      throw new LoginError(
        "invalidLogoutToken",
        error instanceof errors.JOSENotSupported ? UNSUPPORTED : reason(error),
      );
    }
  }

  /** What every token of the provider must have. */
  get #expected() {
    const { issuer, clientId: audience } = this.#config;
    return { issuer, audience, algorithms: ALGORITHMS, clockTolerance: CLOCK_TOLERANCE };
  }

  #checkCallback(callback: URLSearchParams, { state }: Transaction): URLSearchParams {
    // The library checks the code only later, when it is sent.
    if (callback.getAll("code").length !== 1) throw new LoginError("invalidCallback", new Error("more than one code"));
    try {
      return oauth.validateAuthResponse(this.#server, this.#client, callback, state);
    } catch (error) {
      throw new LoginError("invalidCallback", reason(error));
    }
  }

  async #exchange(callback: URLSearchParams, { nonce, verifier }: Transaction, fetch: TokenFetch) {
    try {
      const { redirectURI } = this.#config;
      const response = await oauth.authorizationCodeGrantRequest(
        this.#server,
        this.#client,
        this.#authentication,
        callback,
        redirectURI,
        verifier,
        // Plain HTTP is allowed if the configuration says so, for providers in the same cluster.
        { [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true },
      );
      return await oauth.processAuthorizationCodeResponse(this.#server, this.#client, response, {
        expectedNonce: nonce,
      });
    } catch (error) {
      throw this.#exchangeFailure(error);
    }
  }

  /** Distinguishes errors of the ID token from errors of the call. */
  #exchangeFailure(error: unknown): Error {
    if (!(error instanceof oauth.OperationProcessingError)) return callFailure(error);
    const { cause } = error as {
      cause?: { readonly claim?: unknown; readonly claims?: unknown; readonly body?: unknown };
    };
    if (cause?.claim === "nonce") return new LoginError("nonceMismatch");
    if (cause?.claims !== undefined) return new LoginError("invalidIdToken", reason(error));
    if (!(error.cause instanceof Response))
      return lacksIdToken(cause?.body) ? new LoginError("missingIdToken") : unreadable(error);
    // Not every provider sends the error of RFC 6749, section 5.2, as JSON.
    if (error.cause.status === 400) return new LoginError("codeRejected", reason(error));
    return statusFailure(error.cause.status, error);
  }

  async #verify(idToken: string): Promise<Claims> {
    try {
      const { payload } = await jwtVerify(idToken, this.#keys, {
        ...this.#expected,
        requiredClaims: ["exp", "iat", "sub"],
      });
      return payload as unknown as Claims;
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) this.onUnknownKey();
      throw new LoginError("invalidIdToken", reason(error));
    }
  }
}

/** Anyone can post a logout token, and the library's message would quote names from its header (RFC 7515 4.1.11). */
const UNSUPPORTED = new Error("its header requires an extension or an algorithm that is not supported");

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What may go into a header field: RFC 6750, section 2.1 allows fewer characters, but not every provider keeps to that. */
const SENDABLE = /^[\x21-\x7e]+$/;

function tokensOf({ access_token, refresh_token, expires_in }: oauth.TokenEndpointResponse): Tokens {
  if (!SENDABLE.test(access_token)) throw unreadable(new Error("the access token has characters that none may have"));
  return {
    access: access_token,
    ...(refresh_token !== undefined && { refresh: refresh_token }),
    ...(expires_in !== undefined && { expiresIn: Math.max(1, Math.floor(expires_in)) }),
  };
}

/** Not every provider repeats the session in the id token of a refresh, but a logout still names it. */
function sidOf(renewed: Claims, { sid }: Claims): { readonly sid?: unknown } {
  return renewed.sid === undefined && sid !== undefined ? { sid } : {};
}

/** Whether the response of the token endpoint is complete but for the ID token. */
function lacksIdToken(body: unknown): boolean {
  return typeof body === "object" && body !== null && "access_token" in body && !("id_token" in body);
}

function readKeys(jwks: string): JWTVerifyGetKey {
  try {
    return createLocalJWKSet(JSON.parse(jwks) as JSONWebKeySet);
  } catch (cause) {
    throw PolicyError.at(
      ["jwks"],
      'is not a JSON Web Key Set (RFC 7517); write an object such as {"keys": [...]}',
      cause,
    );
  }
}
