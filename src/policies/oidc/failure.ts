import { GatewayError } from "../../base/errors.ts";

/**
 * A login that went wrong (reference 3.5): 400 what the browser brought, 401 who is asked to log in and cannot, 500 what the
 * provider or the configuration did. `cause` goes to the log: its message must hold no token.
 */
export function oidcFailure(
  status: 400 | 401 | 500,
  message: string,
  cause?: unknown,
  cookies: readonly string[] = [],
): GatewayError {
  const headers = ["cache-control", "no-store", ...cookies.flatMap((cookie) => ["set-cookie", cookie])];
  return new GatewayError("TG_OIDC", message, cause, { status, headers });
}
