import { GatewayError } from "../../../base/errors.ts";
import { type CelEnvironment, CelError, type Expression } from "../../../cel/index.ts";
import { getHeader, removeHeader } from "../../../http/message.ts";
import type { OutgoingContext } from "../../types.ts";
import { headerText } from "../expressions.ts";
import type { CredentialLocation } from "./location-schema.ts";
import type { CredentialPlaces } from "./names.ts";
import { cookieOf, queryParameterOf, removeCookie, removeQueryParameter } from "./places.ts";

/** What carries credentials. */
type Carrying = Pick<OutgoingContext, "request" | "variables">;

/** A place that is compiled once: takes the credential out of requests. */
export interface CredentialFinder {
  /** What has to be known before `find` may be asked; empty unless the place is an expression. */
  readonly expressions: readonly Expression[];
  /**
   * The credential, one latin1 character for each byte, without its prefix; undefined when the request has none, or several
   * in fields of one header. Throws TG_INVALID_REQUEST when an expression fails for another reason than absence.
   */
  find(context: Carrying): string | undefined;
  /**
   * Takes the credential out of the request with everything that stands in the same place, so that no second one that
   * nobody has verified goes on. What an expression has computed stays.
   */
  remove(context: Carrying): void;
}

/** Adds the place to `places`. Throws CelError for an expression that cannot be used. */
export function credentialFinder(
  location: CredentialLocation,
  places: CredentialPlaces,
  cel: CelEnvironment,
): CredentialFinder {
  places.add(location);
  if ("header" in location) return headerFinder(location.header.name, location.header.prefix);
  if ("queryParameter" in location) return queryFinder(location.queryParameter.name);
  if ("cookie" in location) return cookieFinder(location.cookie.name);
  return expressionFinder(cel.compileExpression(location.expression, "request"));
}

function headerFinder(name: string, prefix: string): CredentialFinder {
  const lowerPrefix = prefix.toLowerCase();
  const has = (value: string): boolean => value.slice(0, prefix.length).toLowerCase() === lowerPrefix;
  return {
    expressions: [],
    find({ request: { headers } }) {
      let found: string | undefined;
      for (let i = 0; i < headers.length; i += 2) {
        const value = headers[i + 1] as string;
        if (headers[i] !== name || !has(value)) continue;
        // Two readers could pick different values and see different clients.
        if (found !== undefined) return undefined;
        found = value.slice(prefix.length).trim();
      }
      return found;
    },
    remove({ request }) {
      removeHeader(request.headers, name);
    },
  };
}

function queryFinder(name: string): CredentialFinder {
  return {
    expressions: [],
    find({ request }) {
      const value = queryParameterOf(request.search, name);
      return value === undefined ? undefined : headerText(value);
    },
    remove({ request }) {
      request.search = removeQueryParameter(request.search, name);
    },
  };
}

function cookieFinder(name: string): CredentialFinder {
  return {
    expressions: [],
    find({ request }) {
      return getHeader(request.headers, "cookie") === undefined ? undefined : cookieOf(request.headers, name);
    },
    remove({ request }) {
      request.headers = removeCookie(request.headers, name);
    },
  };
}

function expressionFinder(expression: Expression): CredentialFinder {
  return {
    expressions: [expression],
    find({ variables }) {
      try {
        const value = expression.evaluate(variables);
        return typeof value === "string" ? headerText(value) : undefined;
      } catch (error) {
        if (!(error instanceof CelError)) throw error;
        if (error.absent) return undefined;
        // A client that makes the expression fail must not pass as one without credentials.
        throw new GatewayError("TG_INVALID_REQUEST", undefined, error);
      }
    },
    remove() {},
  };
}
