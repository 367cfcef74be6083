/** Replaces secrets in URLs, for everything that leaves the process: logs, spans, traces, dumps, errors. */
import { type Names, SensitiveParameters } from "./sensitive-names.ts";

export const REDACTED = "<redacted>";

/** Names of parameters whose values are always secret. */
export const SECRET_PARAMETERS = new SensitiveParameters();

declare const shown: unique symbol;
/** The target of a request without its secrets. Logs accept only this type, so code that logs the unredacted target does not compile. */
export type RedactedTarget = string & { readonly [shown]: true };

const QUESTION = 0x3f;
const SEMICOLON = 0x3b;
const AMPERSAND = 0x26;
const SLASH = 0x2f;

/** A parameter of a URL inside a text, whose value may be redacted already. */
const PARAMETER = /([?&#;])([^=&#;?\s"'<>]{1,200})=(<redacted>|[^&#\s"<>]*)/g;
/** User name and password before the host. */
const USER_INFO = /(\/\/)[^/?#\s"<>]+@/g;
/** The name of a property whose value is a text or a number, or holds some, in JSON. */
const PROPERTY = /"([^"\\]{1,200})"\s*:\s*["\d[{-]/g;
/** `?`, `;`, `&` or `#`, encoded once or more often: servers behind the gateway may read what follows in a path as parameters. */
const ENCODED_SEPARATOR = /%(?:25)*(?:3f|3b|26|23)/i;
/** User name and password of a URL in a path, which may be encoded. */
const USER_INFO_IN_PATH = /((?:%(?:25)*2f|\/){2})(?:(?!%(?:25)*2f)[^/?#\s"<>])+(@|%(?:25)*40)/gi;
/** How often a URL may be encoded inside another; values encoded more often are redacted. */
const MAX_LEVELS = 3;

/**
 * Redacts the values of `secret` parameters in the target of a request: in its query, and in parameters of path segments
 * (`/cart;jsessionid=…`, RFC 3986 3.3). Called for every logged request: a target without parameters costs two searches, and one without
 * secrets is not copied. Values that are URLs or JSON with secrets are redacted as a whole.
 */
export function redactTarget(target: string, secret: Names): RedactedTarget {
  const query = target.indexOf("?");
  const segment = target.indexOf(";");
  const encoded = target.includes("%") || target.includes("+");
  const hasUser = target.includes("@");
  if (query === -1 && segment === -1 && !encoded && !hasUser) return target as RedactedTarget;
  if (encoded || hasUser) {
    const pathEnd = query === -1 ? target.length : query;
    const path = redactPath(target.slice(0, pathEnd), secret);
    if (path !== undefined) return redactTarget(path + target.slice(pathEnd), secret);
    if (query === -1 && segment === -1) return target as RedactedTarget;
  }
  // Without any of these, the value of a parameter cannot be a URL with secrets.
  const nests = encoded || hasUser || (query !== -1 && target.includes("?", query + 1)) || target.includes("#");
  let redacted = "";
  let copied = 0;
  let at = query === -1 || (segment !== -1 && segment < query) ? segment : query;
  // `at` is the character before a parameter.
  while (at !== -1) {
    const inQuery = query !== -1 && at >= query;
    const end = endOf(target, at + 1, inQuery);
    const equals = target.indexOf("=", at + 1);
    if (equals !== -1 && equals < end) {
      const name = target.slice(at + 1, equals);
      const isSecret = secret.has(encoded ? decodedName(name) : name);
      // A semicolon may be part of the value of a parameter in a query.
      const ampersand = inQuery && isSecret ? target.indexOf("&", equals) : -1;
      const stop = !(inQuery && isSecret) ? end : ampersand === -1 ? target.length : ampersand;
      if (isSecret || (nests && nestsSecret(target.slice(equals + 1, end), secret))) {
        redacted += target.slice(copied, equals + 1) + REDACTED;
        copied = stop;
      }
      at = nextParameter(target, stop, query);
    } else at = nextParameter(target, end, query);
  }
  return (copied === 0 ? target : redacted + target.slice(copied)) as RedactedTarget;
}

/** Where a parameter that begins at `from` ends: before the next, or before the next segment of the path. */
function endOf(target: string, from: number, inQuery: boolean): number {
  for (let i = from; i < target.length; i++) {
    const code = target.charCodeAt(i);
    if (code === SEMICOLON || (inQuery ? code === AMPERSAND : code === SLASH || code === QUESTION)) return i;
  }
  return target.length;
}

/** The index of the character before the next parameter, searched from `from`; -1 if no parameter follows. */
function nextParameter(target: string, from: number, query: number): number {
  if (from >= target.length) return -1;
  const code = target.charCodeAt(from);
  if (code !== SLASH) return from;
  const segment = target.indexOf(";", from);
  return segment !== -1 && (query === -1 || segment < query) ? segment : query;
}

/** The path of a target, with user information of URLs and encoded parameters that look secret redacted; undefined = unchanged. */
function redactPath(path: string, secret: Names): string | undefined {
  const withoutUser = path.replace(USER_INFO_IN_PATH, `$1${REDACTED}$2`);
  const at = withoutUser.search(ENCODED_SEPARATOR);
  const hides = at !== -1 && nestsSecret(withoutUser.slice(at), secret);
  if (!hides && withoutUser === path) return undefined;
  return hides ? withoutUser.slice(0, at) + REDACTED : withoutUser;
}

/** Whether a value is a URL or JSON with secrets, possibly percent-encoded: `?next=https%3A%2F%2Fa.test%2F%3Ftoken%3D…`. */
function nestsSecret(value: string, secret: Names): boolean {
  let text = value;
  for (let level = 0; level <= MAX_LEVELS; level++) {
    if (redactFlat(text, secret) !== text || hasSecretProperty(text, secret)) return true;
    if (!text.includes("%")) return false;
    const decoded = decodedName(text);
    if (decoded === text) return false;
    text = decoded;
  }
  return true;
}

function hasSecretProperty(text: string, secret: Names): boolean {
  if (!text.includes('"')) return false;
  for (const [, name = ""] of text.matchAll(PROPERTY)) if (secret.has(name)) return true;
  return false;
}

/** Redacts user information and the values of `secret` parameters of all URLs in a text, and of URLs in their parameters. */
export function redactUrls(text: string, secret: Names = SECRET_PARAMETERS): string {
  const flat = redactFlat(text, secret);
  if (!flat.includes("%")) return flat;
  return flat.replace(PARAMETER, (all, separator: string, name: string, value: string) =>
    value.includes("%") && nestsSecret(value, secret) ? `${separator}${name}=${REDACTED}` : all,
  );
}

/** Without the contents of parameters. */
function redactFlat(text: string, secret: Names): string {
  const withoutUser = text.includes("@") ? text.replace(USER_INFO, `$1${REDACTED}@`) : text;
  if (!withoutUser.includes("=")) return withoutUser;
  return withoutUser.replace(PARAMETER, (all, separator: string, name: string) =>
    secret.has(decodedName(name)) ? `${separator}${name}=${REDACTED}` : all,
  );
}

/** The same for all texts in JSON data, such as a dump. */
export function redactAll(value: unknown): unknown {
  if (typeof value === "string") return redactUrls(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(redactAll);
  if ("toJSON" in value && typeof value.toJSON === "function") return redactAll(value.toJSON());
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, redactAll(each)]));
}

function decodedName(name: string): string {
  if (!name.includes("%") && !name.includes("+")) return name;
  return new URLSearchParams(`${name.replace(/[=&]/g, encodeURIComponent)}=`).keys().next().value ?? "";
}
