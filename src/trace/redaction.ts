import { SENSITIVE_HEADERS } from "../base/sensitive-headers.ts";

export const REDACTED = "<redacted>";

/** Lower-case names of headers whose values are never shown; `configured` is `config.sensitiveHeaders`. */
export function sensitiveHeaders(configured: readonly string[]): ReadonlySet<string> {
  return new Set([...SENSITIVE_HEADERS, ...configured.map((name) => name.toLowerCase())]);
}

/**
 * A flat header list as the object that snapshots carry: repeated fields are joined (`; ` for cookies, else `, `), values
 * of `hidden` names replaced.
 */
export function shownHeaders(headers: readonly string[], hidden: ReadonlySet<string>): Record<string, string> {
  const shown: Record<string, string> = {};
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    const before = Object.hasOwn(shown, name) ? shown[name] : undefined;
    let after = value;
    if (hidden.has(name)) after = REDACTED;
    else if (before !== undefined) after = `${before}${name === "cookie" ? "; " : ", "}${value}`;
    // A client may name a field `__proto__`; it must stay a plain entry.
    Object.defineProperty(shown, name, { value: after, enumerable: true, configurable: true, writable: true });
  }
  return shown;
}

/** A query with the values of `hidden` parameters replaced. */
export function shownSearch(search: string, hidden: ReadonlySet<string>): string {
  if (hidden.size === 0) return search;
  return search.replace(/([?&])([^=&]*)=([^&]*)/g, (all, separator: string, name: string) =>
    hidden.has(new URLSearchParams(`${name}=`).keys().next().value ?? "") ? `${separator}${name}=${REDACTED}` : all,
  );
}
