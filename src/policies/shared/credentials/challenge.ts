import type { ErrorAnswer } from "../../../base/errors.ts";
import type { CredentialLocation } from "./location-schema.ts";

type Answer = Partial<Pick<ErrorAnswer, "status" | "headers">>;

/** Realm where the configuration names none: clients group credentials by it, and nothing else depends on it. */
const REALM = "Restricted";

/** What answers requests without a valid credential: a status and a challenge (RFC 9110 11.6.1). */
export interface Challenge {
  /** The request has no credential. */
  readonly missing: Answer;
  /** It has one that is not valid; Bearer says so (RFC 6750 3.1). */
  readonly invalid: Answer;
}

/**
 * The challenge for credentials at `location`. The scheme is the word with which a header's value begins, as in `Bearer `;
 * elsewhere it is `otherwise`. Proxies have a status and a header of their own (RFC 9110 11.7).
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
