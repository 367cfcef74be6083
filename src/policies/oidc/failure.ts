import * as oauth from "oauth4webapi";
import { GatewayError, messageOf } from "../../base/errors.ts";
import { TokenCallError } from "./token-call.ts";

/**
 * A failed login (docs/policies/oidc.md): 400 for what the browser sent, 401 for clients that cannot log in, 502 and 503 for a
 * provider that fails or cannot be reached, 500 for other errors of provider or configuration. `cause` goes to the log, so its
 * message must contain no token. `cookies` are Set-Cookie values. Responses are not cached: they depend on cookies.
 */
export function oidcFailure(
  status: 400 | 401 | 500 | 502 | 503,
  message: string,
  cause?: unknown,
  cookies: readonly string[] = [],
): GatewayError {
  const headers = ["cache-control", "no-store", ...cookies.flatMap((cookie) => ["set-cookie", cookie])];
  // 401 requires a challenge (RFC 9110, section 15.5.2), but no registered scheme covers a session cookie.
  if (status === 401) headers.push("www-authenticate", 'Cookie realm="Restricted"');
  return new GatewayError("TG_OIDC", message, cause, { status, headers });
}

/** A call to the token endpoint that failed, or returned an OAuth error. */
export function callFailure(error: unknown): Error {
  if (error instanceof oauth.ResponseBodyError)
    // The code is invalid, expired, used, or of another client (RFC 6749, section 5.2). Other errors concern the gateway itself.
    return error.error === "invalid_grant"
      ? oidcFailure(400, "the provider rejects the code", reason(error))
      : statusFailure(error.status, error);
  if (error instanceof oauth.WWWAuthenticateChallengeError) return statusFailure(error.status, error);
  if (error instanceof TokenCallError) return oidcFailure(503, "the provider cannot be reached", reason(error));
  return unreadable(error);
}

/** 400 to 499 concern the gateway's request; other statuses are not valid responses of a token endpoint. */
export function statusFailure(status: number, error: unknown): Error {
  return status >= 400 && status < 500 ? oidcFailure(500, "token exchange failed", reason(error)) : unreadable(error);
}

export function unreadable(error: unknown): Error {
  return oidcFailure(502, "token exchange failed", reason(error));
}

/** The message alone: other fields of these errors, such as the body of a response, contain tokens. */
export function reason(error: unknown): Error {
  if (error instanceof oauth.ResponseBodyError) return new Error(`the token endpoint said ${error.error}`);
  if (error instanceof oauth.WWWAuthenticateChallengeError) return new Error(`the token endpoint said ${error.status}`);
  return new Error(messageOf(error));
}
