import { createHash } from "node:crypto";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey, jwtVerify } from "jose";
import * as oauth from "oauth4webapi";
import { GatewayError } from "../../base/errors.ts";
import { PolicyError } from "../contract/policy-error.ts";
import { callFailure, LoginError, reason, statusFailure, unreadable } from "./failure.ts";
import type { Oidc } from "./schema.ts";
import type { Claims } from "./session.ts";
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

  /** Exchanges the code of a callback for an ID token and verifies it. Throws TG_OIDC, whose messages contain no token. */
  async redeem(callback: URLSearchParams, transaction: Transaction, fetch: TokenFetch): Promise<Claims> {
    return this.#verify(
      await this.#exchange(this.#checkCallback(callback, transaction), transaction, fetch),
      transaction,
    );
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

  #checkCallback(callback: URLSearchParams, { state }: Transaction): URLSearchParams {
    // The library checks the code only later, when it is sent.
    if (callback.getAll("code").length !== 1) throw new LoginError("invalidCallback", new Error("more than one code"));
    try {
      return oauth.validateAuthResponse(this.#server, this.#client, callback, state);
    } catch (error) {
      throw new LoginError("invalidCallback", reason(error));
    }
  }

  async #exchange(callback: URLSearchParams, { nonce, verifier }: Transaction, fetch: TokenFetch): Promise<string> {
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
      const tokens = await oauth.processAuthorizationCodeResponse(this.#server, this.#client, response, {
        expectedNonce: nonce,
      });
      return tokens.id_token ?? "";
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

  async #verify(idToken: string, { nonce }: Transaction): Promise<Claims> {
    const { issuer, clientId } = this.#config;
    try {
      const { payload } = await jwtVerify(idToken, this.#keys, {
        issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE,
        requiredClaims: ["exp", "iat", "sub"],
      });
      if (payload.nonce !== nonce) throw new LoginError("nonceMismatch");
      return payload as unknown as Claims;
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      if (error instanceof errors.JWKSNoMatchingKey) this.onUnknownKey();
      throw new LoginError("invalidIdToken", reason(error));
    }
  }
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
