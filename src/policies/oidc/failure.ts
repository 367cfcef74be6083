import { GatewayError } from "../../base/errors.ts";

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
