import { SENSITIVE_HEADERS, SensitiveNames } from "../base/sensitive-names.ts";

export const REDACTED = "<redacted>";

/** Header fields whose values are URLs. */
const URL_HEADERS = new Set(
  "content-location link location referer refresh x-forwarded-uri x-original-uri x-original-url x-rewrite-url".split(
    " ",
  ),
);
/** A query parameter of a URL inside a text. */
const PARAMETER = /([?&#;])([^=&#;?\s"'<>]{1,200})=([^&#\s"<>]*)/g;
/** User name and password before the host. */
const USER_INFO = /(\/\/)[^/?#@\s"<>]+@/g;

/** Lower-case names of headers to redact; `configured` is `config.sensitiveHeaders`. */
export function sensitiveHeaders(configured: readonly string[]): ReadonlySet<string> {
  return new SensitiveNames([...SENSITIVE_HEADERS, ...configured.map((name) => name.toLowerCase())]);
}

/**
 * Converts a flat header list to the object in snapshots: repeated fields are joined (`; ` for cookies, otherwise `, `); the values
 * of `hidden` names, and of `parameters` in URLs, are redacted.
 */
export function redactHeaders(
  headers: readonly string[],
  hidden: ReadonlySet<string>,
  parameters?: ReadonlySet<string>,
): Record<string, string> {
  const redacted: Record<string, string> = {};
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    let value = headers[i + 1] as string;
    if (parameters !== undefined && URL_HEADERS.has(name)) value = redactUrls(value, parameters);
    const before = Object.hasOwn(redacted, name) ? redacted[name] : undefined;
    let after = value;
    if (hidden.has(name)) after = REDACTED;
    else if (before !== undefined) after = `${before}${name === "cookie" ? "; " : ", "}${value}`;
    // A client can name a field `__proto__`: an assignment would set the prototype.
    Object.defineProperty(redacted, name, { value: after, enumerable: true, configurable: true, writable: true });
  }
  return redacted;
}

/** Redacts the values of `hidden` parameters in a query, which is empty or starts with `?`. */
export function redactSearch(search: string, hidden: ReadonlySet<string>): string {
  return search.replace(/([?&])([^=&]*)=([^&]*)/g, (all, separator: string, name: string) =>
    hidden.has(decoded(name)) ? `${separator}${name}=${REDACTED}` : all,
  );
}

/** Redacts user information and the values of `hidden` parameters of all URLs in a text. */
export function redactUrls(text: string, hidden: ReadonlySet<string>): string {
  return text
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(PARAMETER, (all, separator: string, name: string) =>
      hidden.has(decoded(name)) ? `${separator}${name}=${REDACTED}` : all,
    );
}

function decoded(name: string): string {
  return new URLSearchParams(`${name}=`).keys().next().value ?? "";
}
