import type { ErrorAnswer } from "../../../base/errors.ts";
import type { CredentialLocation } from "../../schema/location.ts";

type Answer = Partial<Pick<ErrorAnswer, "status" | "headers">>;

/** Default realm (RFC 9110, section 11.5). Clients reuse credentials within a realm; nothing else depends on it. */
const REALM = "Restricted";

/** Status and challenge for requests without a valid credential. 401 and 407 require one (RFC 9110, section 11.6.1). */
interface Challenge {
  /** The request has no credential. */
  readonly missing: Answer;
  /** The credential is invalid; for Bearer with `error="invalid_token"` (RFC 6750, section 3.1). */
  readonly invalid: Answer;
}

/**
 * The challenge for credentials at `location`. The scheme is the word with which a header's value begins, as in `Bearer `;
 * elsewhere it is `otherwise`. Proxies have their own status and header (RFC 9110 11.7).
 */
export function challengeFor(location: CredentialLocation, otherwise: string, realm = REALM): Challenge {
  const header = "header" in location ? location.header : undefined;
  const proxy = header?.name === "proxy-authorization";
  const own =
    proxy || header?.name === "authorization" ? /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) $/.exec(header?.prefix ?? "") : null;
  const scheme = own?.[1] ?? otherwise;
  const answer = (parameters: string): Answer => ({
    ...(proxy && { status: 407 }),
    headers: [proxy ? "proxy-authenticate" : "www-authenticate", `${scheme} ${parameters}`],
  });
  const quoted = `realm="${realm.replace(/["\\]/g, "\\$&")}"`;
  const bearer = scheme.toLowerCase() === "bearer";
  return { missing: answer(quoted), invalid: answer(bearer ? `${quoted}, error="invalid_token"` : quoted) };
}
