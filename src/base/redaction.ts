/** Replaces secrets in URLs, for everything that leaves the process: logs, spans, traces, dumps, errors. */
import { SensitiveParameters } from "./sensitive-names.ts";

export const REDACTED = "<redacted>";

/** Names of parameters that are secrets everywhere. */
export const SECRET_PARAMETERS = new SensitiveParameters();

declare const shown: unique symbol;
/** The target of a request without its secrets: what is logged has this type, so that a log of the target itself does not compile. */
export type RedactedTarget = string & { readonly [shown]: true };

/** A set of decoded names. */
type Names = Pick<ReadonlySet<string>, "has">;

const QUESTION = 0x3f;
const SEMICOLON = 0x3b;
const AMPERSAND = 0x26;
const SLASH = 0x2f;

/** A parameter of a URL inside a text, whose value may be redacted already. */
const PARAMETER = /([?&#;])([^=&#;?\s"'<>]{1,200})=(?:<redacted>|[^&#\s"<>]*)/g;
/** User name and password before the host. */
const USER_INFO = /(\/\/)[^/?#@\s"<>]+@/g;

/**
 * Redacts the values of `secret` parameters in the target of a request: in its query, and in parameters of path segments
 * (`/cart;jsessionid=…`, RFC 3986 3.3). Every request that is logged comes here: a target without parameters costs two searches, and one
 * without secrets is not copied.
 */
export function redactTarget(target: string, secret: Names): RedactedTarget {
  const query = target.indexOf("?");
  const segment = target.indexOf(";");
  if (query === -1 && segment === -1) return target as RedactedTarget;
  const encoded = target.includes("%") || target.includes("+");
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
      if (isSecret || (encoded && nestsSecret(target.slice(equals + 1, end), secret))) {
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

/** The character before the next parameter, from `from` on; -1 = there is none. */
function nextParameter(target: string, from: number, query: number): number {
  if (from >= target.length) return -1;
  const code = target.charCodeAt(from);
  if (code !== SLASH) return from;
  const segment = target.indexOf(";", from);
  return segment !== -1 && (query === -1 || segment < query) ? segment : query;
}

/** Whether a value is a URL with secrets, in percent-encoding: `?next=https%3A%2F%2Fa.test%2F%3Ftoken%3D…`. */
function nestsSecret(value: string, secret: Names): boolean {
  if (!value.includes("%")) return false;
  const url = decodedName(value);
  return redactUrls(url, secret) !== url;
}

/** Redacts user information and the values of `secret` parameters of all URLs in a text. */
export function redactUrls(text: string, secret: Names = SECRET_PARAMETERS): string {
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
  return new URLSearchParams(`${name}=`).keys().next().value ?? "";
}
