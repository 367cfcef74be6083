import { decodeJwt, type JWTPayload } from "jose";
import type { CelEnvironment } from "../../cel/index.ts";
import { type ConfigPath, PolicyError } from "../policy-error.ts";
import { credentialFinder } from "../shared/credentials/find.ts";
import type { CredentialLocation } from "../shared/credentials/location-schema.ts";
import type { CredentialPlaces } from "../shared/credentials/names.ts";
import type { OutgoingContext } from "../types.ts";

/** Takes a token of the client out of requests. */
export interface ClientToken {
  /** undefined when there is none. */
  find(context: OutgoingContext): string | undefined;
  /** Takes it out of the request. */
  remove(context: OutgoingContext): void;
}

/** Adds the place to `places`. Throws for an expression that cannot be used. */
export function clientToken(
  source: CredentialLocation,
  path: ConfigPath,
  places: CredentialPlaces,
  cel: CelEnvironment,
): ClientToken {
  const finder = credentialFinder(source, places, cel);
  if (finder.expressions.some(({ reads }) => reads.has("request.body") || reads.has("request.bodyPrefix")))
    throw PolicyError.at(path, "a token cannot be read from a body; use a header, a cookie or a query parameter");
  const place = JSON.stringify(source);
  return {
    find(context) {
      const found = finder.find(context);
      if (found !== undefined && found.trim() !== "") return found;
      const { token, tokenFrom } = context.requestMetadata;
      // jwtAuth takes the tokens that it verifies out of the request.
      return tokenFrom !== undefined && JSON.stringify(tokenFrom) === place ? token : undefined;
    },
    remove: (context) => finder.remove(context),
  };
}

/** Claims of a token whose signature is not verified; empty for text that is not a JWT. */
export function unverifiedClaims(token: string): JWTPayload {
  try {
    return decodeJwt(token);
  } catch {
    return {};
  }
}

/** Whether the claim `may_act` of the client's token names the actor (RFC 8693 4.4): every claim in it has to fit. */
export function mayAct(subject: Readonly<Record<string, unknown>>, actor: Readonly<Record<string, unknown>>): boolean {
  const { may_act: named } = subject;
  if (typeof named !== "object" || named === null || Array.isArray(named)) return false;
  const wanted = Object.entries(named);
  return wanted.length > 0 && wanted.every(([claim, value]) => fits(value, actor[claim]));
}

function fits(wanted: unknown, actual: unknown): boolean {
  if (actual === undefined) return false;
  const [all, some] = [[wanted].flat(), [actual].flat()].map((values) => values.map((value) => JSON.stringify(value)));
  return (all ?? []).some((value) => some?.includes(value));
}
