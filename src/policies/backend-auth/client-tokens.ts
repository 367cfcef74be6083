import { decodeJwt, type JWTPayload } from "jose";
import { isObject } from "../../base/fields.ts";
import { type CelEnvironment, readsBody } from "../../cel/index.ts";
import type { CredentialPlaces } from "../contract/credential-names.ts";
import { type ConfigPath, PolicyError } from "../contract/policy-error.ts";
import type { OutgoingContext } from "../contract/types.ts";
import type { CredentialLocation } from "../schema/location.ts";
import { credentialFinder } from "../shared/credentials/find.ts";

/** Finds and removes a token of the client. */
export interface ClientToken {
  /** The token; undefined if the request has none. */
  find(context: OutgoingContext): string | undefined;
  /** Removes it from the request: the backend gets the new token instead, not both. */
  remove(context: OutgoingContext): void;
}

/**
 * Compiles the location of a token. Adds it to `places`. Throws PolicyError or CelError for an invalid expression, also for one that
 * reads the body, which this policy does not wait for.
 */
export function clientToken(
  source: CredentialLocation,
  path: ConfigPath,
  places: CredentialPlaces,
  cel: CelEnvironment,
): ClientToken {
  const finder = credentialFinder(source, places, cel);
  if (finder.expressions.some((expression) => readsBody(expression, "request")))
    throw PolicyError.at(path, "a token cannot be read from a body; use a header, a cookie or a query parameter");
  const place = JSON.stringify(source);
  return {
    find(context) {
      const found = finder.find(context);
      if (found !== undefined && found.trim() !== "") return found;
      const { token, tokenFrom } = context.requestMetadata;
      // jwtAuth has verified this token and removed it from the request.
      return tokenFrom !== undefined && JSON.stringify(tokenFrom) === place ? token : undefined;
    },
    remove: (context) => finder.remove(context),
  };
}

/** Claims of a token without verifying its signature; the token endpoint does that. Empty if the text is not a JWT. */
export function unverifiedClaims(token: string): JWTPayload {
  try {
    return decodeJwt(token);
  } catch {
    return {};
  }
}

/** Whether `may_act` of the client's token names the actor (RFC 8693, section 4.4): every claim in it must match the actor's. */
export function mayAct(subject: Readonly<Record<string, unknown>>, actor: Readonly<Record<string, unknown>>): boolean {
  const { may_act: named } = subject;
  if (!isObject(named)) return false;
  const wanted = Object.entries(named);
  return wanted.length > 0 && wanted.every(([claim, value]) => fits(value, actor[claim]));
}

/** Equal values, or a common element where one of them is a list, such as `aud`. */
function fits(wanted: unknown, actual: unknown): boolean {
  if (actual === undefined) return false;
  const [all, some] = [[wanted].flat(), [actual].flat()].map((values) => values.map((value) => JSON.stringify(value)));
  return (all ?? []).some((value) => some?.includes(value));
}
