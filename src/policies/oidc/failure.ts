import * as oauth from "oauth4webapi";
import { ERRORS, GatewayError, messageOf } from "../../base/errors.ts";
import { rejected, type Told } from "../contract/decisions.ts";
import { TokenCallError } from "./token-call.ts";

/** Why a login or logout failed, or cannot begin: status, text and, in traces, the action if it is not `callback`. */
const PROBLEMS = {
  authenticationRequired: [401, "authentication required"],
  invalidCallback: [400, "invalid callback"],
  missingTransaction: [400, "no login is in progress: the browser sent no cookie of one"],
  invalidTransaction: [400, "the cookie of the login has expired or is not valid"],
  csrfMismatch: [400, "the state of the callback is not that of the login"],
  nonceMismatch: [400, "the nonce of the id token is not that of the login"],
  codeRejected: [400, "the provider rejects the code"],
  providerError: [400, "the provider returned an error"],
  invalidIdToken: [500, "the id token is invalid"],
  missingIdToken: [500, "the token endpoint returned no id token"],
  refreshRefused: [401, "the provider no longer accepts the session"],
  foreignLogout: [403, "the logout comes from another site", "logout"],
  invalidLogoutToken: [400, "the logout token is invalid", "backChannelLogout"],
  revocationsFull: [503, "too many logouts at a time", "logout"],
  cookieTooLarge: [500, "claims and tokens are too large for cookies"],
  exchangeRefused: [500, "the token endpoint refuses the request of the gateway"],
  exchangeFailed: [502, "the token endpoint gave no valid response"],
  unreachable: [503, "the provider cannot be reached"],
} as const;

export type LoginProblem = keyof typeof PROBLEMS;

/** Problems of logins and logouts are decisions of the policy, `why` with what the provider or a library says. */
export const PROBLEM_TEXTS = Object.fromEntries(
  Object.entries(PROBLEMS).map(([code, [, text, action = "callback"]]) => [
    code,
    ({ why }: { readonly why: string | undefined }): Told =>
      rejected(why === undefined ? text : `${text}: ${why}`, {
        action,
        result: `${ERRORS.TG_OIDC.message}: ${text}`,
      }),
  ]),
) as Record<LoginProblem, (decision: { readonly why: string | undefined }) => Told>;

/** 401 requires a challenge (RFC 9110, section 15.5.2), but no registered scheme covers a session cookie. */
export const CHALLENGE = { headers: ["www-authenticate", 'Cookie realm="Restricted"'] };

/**
 * A failed login or logout (docs/policies/oidc.md): 400 for what the browser sent, 401 for clients that cannot log in, 502 and 503 for a
 * provider that fails or cannot be reached, 500 for other errors of provider or configuration. `cause` goes to the log, so its
 * message must contain no token. `cookies` are Set-Cookie values. Responses are not cached: they depend on cookies.
 */
export class LoginError extends GatewayError {
  readonly problem: LoginProblem;
  declare readonly cause: Error | undefined;

  constructor(problem: LoginProblem, cause?: Error, cookies: readonly string[] = []) {
    const [status, text] = PROBLEMS[problem];
    const headers = ["cache-control", "no-store", ...cookies.flatMap((cookie) => ["set-cookie", cookie])];
    if (status === 401) headers.push(...CHALLENGE.headers);
    super("TG_OIDC", text, cause, { status, headers });
    this.problem = problem;
  }
}

/** A call to the token endpoint that failed, or returned an OAuth error. */
export function callFailure(error: unknown): Error {
  if (error instanceof oauth.ResponseBodyError)
    // The code is invalid, expired, used, or of another client (RFC 6749, section 5.2). Other errors concern the gateway itself.
    return error.error === "invalid_grant"
      ? new LoginError("codeRejected", reason(error))
      : statusFailure(error.status, error);
  if (error instanceof oauth.WWWAuthenticateChallengeError) return statusFailure(error.status, error);
  if (error instanceof TokenCallError) return new LoginError("unreachable", reason(error));
  return unreadable(error);
}

/** 400 to 499 concern the gateway's request; other statuses are not valid responses of a token endpoint. */
export function statusFailure(status: number, error: unknown): Error {
  return status >= 400 && status < 500 ? new LoginError("exchangeRefused", reason(error)) : unreadable(error);
}

export function unreadable(error: unknown): Error {
  return new LoginError("exchangeFailed", reason(error));
}

/** The message alone: other fields of these errors, such as the body of a response, contain tokens. */
export function reason(error: unknown): Error {
  if (error instanceof oauth.ResponseBodyError) return new Error(`the token endpoint said ${error.error}`);
  if (error instanceof oauth.WWWAuthenticateChallengeError) return new Error(`the token endpoint said ${error.status}`);
  return new Error(messageOf(error));
}
