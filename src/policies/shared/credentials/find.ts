import { GatewayError } from "../../../base/errors.ts";
import { type CelEnvironment, CelError, type Expression, headerText } from "../../../cel/index.ts";
import { getHeader, removeHeader } from "../../../http/message/message.ts";
import type { CredentialPlaces } from "../../contract/credential-names.ts";
import type { OutgoingContext } from "../../contract/types.ts";
import type { CredentialLocation } from "../../schema/location.ts";
import { cookieOf, queryParameterOf, removeCookie, removeQueryParameter } from "./places.ts";

/** The part of a context that carries credentials. */
type Carrying = Pick<OutgoingContext, "request" | "variables">;

/** A compiled location, which finds and removes the credential of requests. */
interface CredentialFinder {
  /** Expressions that `find` evaluates, so that callers wait for a body which they read; empty for other locations. */
  readonly expressions: readonly Expression[];
  /**
   * The credential, one latin1 character for each byte, without its prefix; undefined when the request has none, or several
   * in fields of one header. Throws TG_INVALID_REQUEST when an expression fails for another reason than absence.
   */
  find(context: Carrying): string | undefined;
  /**
   * Removes everything at the location, not only the verified credential: a second, unverified one must not reach the backend.
   * An expression has no location, so what it read stays.
   */
  remove(context: Carrying): void;
  /**
   * Removes what a backend could take for such a credential, when the request passes without it: of a header the fields with the prefix,
   * because others may be for the backend.
   */
  discard(context: Carrying): void;
}

/** Adds the location to `places`, which keeps it out of traces. Throws CelError for an expression that does not compile. */
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
  // Backends may accept another space after the scheme.
  const scheme = lowerPrefix.trimEnd();
  const resembles = (value: string): boolean => value.slice(0, scheme.length).toLowerCase() === scheme;
  return {
    expressions: [],
    find({ request: { headers } }) {
      let found: string | undefined;
      for (let i = 0; i < headers.length; i += 2) {
        const value = headers[i + 1] as string;
        if (headers[i] !== name || !has(value)) continue;
        // The gateway and the backend could read different ones, and so see different clients.
        if (found !== undefined) return undefined;
        found = value.slice(prefix.length).trim();
      }
      return found;
    },
    remove({ request }) {
      removeHeader(request.headers, name);
    },
    discard({ request: { headers } }) {
      for (let i = headers.length - 2; i >= 0; i -= 2)
        if (headers[i] === name && resembles(headers[i + 1] as string)) headers.splice(i, 2);
    },
  };
}

function queryFinder(name: string): CredentialFinder {
  const remove: CredentialFinder["remove"] = ({ request }) => {
    request.search = removeQueryParameter(request.search, name);
  };
  return {
    expressions: [],
    find({ request }) {
      const value = queryParameterOf(request.search, name);
      return value === undefined ? undefined : headerText(value);
    },
    remove,
    discard: remove,
  };
}

function cookieFinder(name: string): CredentialFinder {
  const remove: CredentialFinder["remove"] = ({ request }) => {
    if (getHeader(request.headers, "cookie") !== undefined) request.headers = removeCookie(request.headers, name);
  };
  return {
    expressions: [],
    find({ request }) {
      return getHeader(request.headers, "cookie") === undefined ? undefined : cookieOf(request.headers, name);
    },
    remove,
    discard: remove,
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
        // In mode `optional`, a client could otherwise pass as anonymous by making the expression fail.
        throw new GatewayError("TG_INVALID_REQUEST", undefined, error);
      }
    },
    remove() {},
    discard() {},
  };
}
