/**
 * Reading, removing and setting query parameters and cookies in place. Everything else stays byte for byte as the client sent it:
 * backends may verify signatures over it.
 */
import { cookiePairs, findCookie } from "../../../base/cookies.ts";
import type { HeaderList } from "../../../http/message/message.ts";
import { copyField, madeOf } from "../../../http/message/message.ts";
import { latin1 } from "../../../http/message/syntax.ts";
import type { CredentialLocation } from "../../schema/location.ts";

/** A location as the texts of decisions name it. */
export function placeText(location: CredentialLocation): string {
  if ("header" in location) {
    const { name, prefix } = location.header;
    return `the header ${name}${prefix === "" ? "" : ` after ${JSON.stringify(prefix)}`}`;
  }
  if ("queryParameter" in location) return `the query parameter ${location.queryParameter.name}`;
  return "cookie" in location ? `the cookie ${location.cookie.name}` : `\`${location.expression}\``;
}

/**
 * The last value of a parameter, as routes and expressions read it (docs/configuration.md#routematch), decoded as forms are;
 * `search` is `` or begins with `?`.
 */
export function queryParameterOf(search: string, name: string): string | undefined {
  let found: string | undefined;
  for (const part of partsOf(search)) {
    const parameter = decode(part);
    if (parameter?.[0] === name) [, found] = parameter;
  }
  return found;
}

/** The query without every parameter of the name. */
export function removeQueryParameter(search: string, name: string): string {
  const kept = partsOf(search).filter((part) => decode(part)?.[0] !== name);
  return kept.length === 0 ? "" : `?${kept.join("&")}`;
}

/** The query with the parameter set to `value`, in place of those of the name. */
export function setQueryParameter(search: string, name: string, value: string): string {
  const others = removeQueryParameter(search, name);
  return `${others === "" ? "?" : `${others}&`}${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
}

function partsOf(search: string): string[] {
  return search.length > 1 ? search.slice(1).split("&") : [];
}

/** Name and value, by the decoder that routes use: two decoders would differ about malformed escapes. */
function decode(part: string): readonly [name: string, value: string] | undefined {
  // URLSearchParams drops a leading `?`, which here would belong to the name.
  const [parameter] = new URLSearchParams(`&${part}`);
  return parameter;
}

/** The first cookie of the name (RFC 6265 4.2.1), without quotes around its value. */
export function cookieOf(headers: HeaderList, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== "cookie") continue;
    const value = findCookie(headers[i + 1] as string, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** The headers without every cookie of the name, and without Cookie fields that had no other. */
export function removeCookie(headers: HeaderList, name: string): HeaderList {
  const kept = madeOf(headers, []);
  for (let i = 0; i < headers.length; i += 2) {
    const field = headers[i] as string;
    const value = headers[i + 1] as string;
    if (field !== "cookie") copyField(kept, headers, i);
    else {
      const pairs = cookiePairs(value).filter((pair) => pair.name !== name);
      if (pairs.length > 0) kept.push(field, latin1(pairs.map(({ text }) => text).join("; ")));
    }
  }
  return kept;
}
