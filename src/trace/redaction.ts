import { SENSITIVE_HEADERS, SensitiveNames } from "../base/sensitive-names.ts";

export const REDACTED = "<redacted>";

/** Header fields whose values are URLs. */
const URL_HEADERS = new Set(
  "content-location link location referer refresh x-forwarded-uri x-original-uri x-original-url x-rewrite-url".split(
    " ",
  ),
);
/** A parameter of a URL inside a text; the value ends where the URL does. */
const PARAMETER = /([?&#;])([^=&#;?\s"'<>]{1,200})=([^&#\s"<>]*)/g;
/** Name and password before the host. */
const USER_INFO = /(\/\/)[^/?#@\s"<>]+@/g;

/** Lower-case names of headers whose values are never shown; `configured` is `config.sensitiveHeaders`. */
export function sensitiveHeaders(configured: readonly string[]): ReadonlySet<string> {
  return new SensitiveNames([...SENSITIVE_HEADERS, ...configured.map((name) => name.toLowerCase())]);
}

/**
 * A flat header list as the object that snapshots carry: repeated fields are joined (`; ` for cookies, else `, `), values
 * of `hidden` names replaced, and those of `parameters` in URLs.
 */
export function shownHeaders(
  headers: readonly string[],
  hidden: ReadonlySet<string>,
  parameters?: ReadonlySet<string>,
): Record<string, string> {
  const shown: Record<string, string> = {};
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    let value = headers[i + 1] as string;
    if (parameters !== undefined && URL_HEADERS.has(name)) value = shownUrls(value, parameters);
    const before = Object.hasOwn(shown, name) ? shown[name] : undefined;
    let after = value;
    if (hidden.has(name)) after = REDACTED;
    else if (before !== undefined) after = `${before}${name === "cookie" ? "; " : ", "}${value}`;
    // A client may name a field `__proto__`; it must stay a plain entry.
    Object.defineProperty(shown, name, { value: after, enumerable: true, configurable: true, writable: true });
  }
  return shown;
}

/** A query, `` or from `?` on, with the values of `hidden` parameters replaced. */
export function shownSearch(search: string, hidden: ReadonlySet<string>): string {
  return search.replace(/([?&])([^=&]*)=([^&]*)/g, (all, separator: string, name: string) =>
    hidden.has(decoded(name)) ? `${separator}${name}=${REDACTED}` : all,
  );
}

/** A text in which URLs may stand, with the values of their `hidden` parameters replaced. */
export function shownUrls(text: string, hidden: ReadonlySet<string>): string {
  return text
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(PARAMETER, (all, separator: string, name: string) =>
      hidden.has(decoded(name)) ? `${separator}${name}=${REDACTED}` : all,
    );
}

function decoded(name: string): string {
  return new URLSearchParams(`${name}=`).keys().next().value ?? "";
}
