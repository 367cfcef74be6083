import * as oauth from "oauth4webapi";
import { GatewayError, messageOf } from "../../base/errors.ts";
import { TokenCallError } from "./token-call.ts";

/**
 * A login that went wrong (reference 3.5): 400 what the browser brought, 401 a client that cannot log in, 502 and 503 a
 * provider that fails or cannot be reached, 500 what else the provider or the configuration did. `cause` goes to the log: its message must hold no token.
 */
export function oidcFailure(
  status: 400 | 401 | 500 | 502 | 503,
  message: string,
  cause?: unknown,
  cookies: readonly string[] = [],
): GatewayError {
  const headers = ["cache-control", "no-store", ...cookies.flatMap((cookie) => ["set-cookie", cookie])];
  // No registered scheme stands for a session in a cookie, and 401 needs a challenge (RFC 9110 15.5.2).
  if (status === 401) headers.push("www-authenticate", 'Cookie realm="Restricted"');
  return new GatewayError("TG_OIDC", message, cause, { status, headers });
}

/** What a call to the token endpoint says that gave no answer, or an error of OAuth. */
export function callFailure(error: unknown): Error {
  if (error instanceof oauth.ResponseBodyError)
    // The code is wrong, over, used, or another client's (RFC 6749 5.2). Other errors are about this client.
    return error.error === "invalid_grant"
      ? oidcFailure(400, "the provider refuses the code", reason(error))
      : statusFailure(error.status, error);
  if (error instanceof oauth.WWWAuthenticateChallengeError) return statusFailure(error.status, error);
  if (error instanceof TokenCallError) return oidcFailure(503, "the provider cannot be reached", reason(error));
  return unreadable(error);
}

/** Statuses of 400 to 499 are about what this client has sent; others are no answers of a token endpoint. */
export function statusFailure(status: number, error: unknown): Error {
  return status >= 400 && status < 500 ? oidcFailure(500, "token exchange failed", reason(error)) : unreadable(error);
}

export function unreadable(error: unknown): Error {
  return oidcFailure(502, "token exchange failed", reason(error));
}

/** The message alone: what these errors carry besides, such as the body of a response, holds tokens. */
export function reason(error: unknown): Error {
  if (error instanceof oauth.ResponseBodyError) return new Error(`the token endpoint said ${error.error}`);
  if (error instanceof oauth.WWWAuthenticateChallengeError) return new Error(`the token endpoint said ${error.status}`);
  return new Error(messageOf(error));
}
