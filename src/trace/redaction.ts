import { REDACTED, redactUrls } from "../base/redaction.ts";
import { type Names, SENSITIVE_HEADERS, SensitiveNames } from "../base/sensitive-names.ts";

/** Header fields whose values are URLs. */
const URL_HEADERS = new Set(
  "content-location link location referer refresh x-forwarded-uri x-original-uri x-original-url x-rewrite-url".split(
    " ",
  ),
);

/** Lower-case names of headers to redact; `configured` is `config.sensitiveHeaders`. */
export function sensitiveHeaders(configured: readonly string[]): ReadonlySet<string> {
  return new SensitiveNames([...SENSITIVE_HEADERS, ...configured.map((name) => name.toLowerCase())]);
}

/**
 * Converts a flat header list to the object in snapshots: repeated fields are joined (`; ` for cookies, otherwise `, `); the values
 * of `hidden` names, and of `parameters` in URLs, are redacted.
 */
export function redactHeaders(headers: readonly string[], hidden: Names, parameters?: Names): Record<string, string> {
  const redacted: Record<string, string> = {};
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = shownValue(name, headers[i + 1] as string, hidden, parameters);
    const before = Object.hasOwn(redacted, name) && !hidden.has(name) ? redacted[name] : undefined;
    const after = before === undefined ? value : `${before}${name === "cookie" ? "; " : ", "}${value}`;
    // A client can name a field `__proto__`: an assignment would set the prototype.
    Object.defineProperty(redacted, name, { value: after, enumerable: true, configurable: true, writable: true });
  }
  return redacted;
}

/** The same for a list; returns the same list if there is nothing to redact. */
export function redactFields(headers: readonly string[], hidden: Names, parameters?: Names): readonly string[] {
  let redacted: string[] | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    const shown = shownValue(name, value, hidden, parameters);
    if (shown === value) continue;
    redacted ??= [...headers];
    redacted[i + 1] = shown;
  }
  return redacted ?? headers;
}

function shownValue(name: string, value: string, hidden: Names, parameters: Names | undefined): string {
  if (hidden.has(name)) return REDACTED;
  return parameters !== undefined && URL_HEADERS.has(name) ? redactUrls(value, parameters) : value;
}
