/** Replaces secrets in URLs, for everything that leaves the process: logs, spans, traces, dumps, errors. */
import { SensitiveParameters } from "./sensitive-names.ts";

export const REDACTED = "<redacted>";

/** Names of parameters that are secrets everywhere. */
export const SECRET_PARAMETERS = new SensitiveParameters();

/** A set of decoded names. */
type Names = Pick<ReadonlySet<string>, "has">;

const QUESTION = 0x3f;
const SEMICOLON = 0x3b;
const AMPERSAND = 0x26;
const EQUALS = 0x3d;

/** A parameter of a URL inside a text, whose value may be redacted already. */
const PARAMETER = /([?&#;])([^=&#;?\s"'<>]{1,200})=(?:<redacted>|[^&#\s"<>]*)/g;
/** User name and password before the host. */
const USER_INFO = /(\/\/)[^/?#@\s"<>]+@/g;

/**
 * Redacts the values of `secret` parameters in the target of a request: in its query, and in parameters of path segments
 * (`/cart;jsessionid=…`, RFC 3986 3.3). Every request that is logged comes here: without a secret nothing is copied.
 */
export function redactTarget(target: string, secret: Names): string {
  let redacted = "";
  let copied = 0;
  // Where the name of a parameter begins; 0 = outside of one.
  let name = 0;
  let inQuery = false;
  const { length } = target;
  for (let i = firstParameter(target); i < length; i++) {
    const code = target.charCodeAt(i);
    if (code === SEMICOLON || (inQuery && code === AMPERSAND)) name = i + 1;
    else if (code === QUESTION && !inQuery) {
      inQuery = true;
      name = i + 1;
    } else if (code === EQUALS && name !== 0) {
      const end = endOfValue(target, i + 1, inQuery);
      const isSecret = secret.has(decodedName(target.slice(name, i))) || nestsSecret(target.slice(i + 1, end), secret);
      name = 0;
      if (!isSecret) continue;
      redacted += target.slice(copied, i + 1) + REDACTED;
      copied = end;
      i = end - 1;
    }
  }
  return copied === 0 ? target : redacted + target.slice(copied);
}

/** Its length if there is none, as in most targets. */
function firstParameter(target: string): number {
  const query = target.indexOf("?");
  const segment = target.indexOf(";");
  if (segment !== -1 && (query === -1 || segment < query)) return segment;
  return query === -1 ? target.length : query;
}

/** A semicolon may be part of the value of a parameter in a query. */
function endOfValue(target: string, from: number, inQuery: boolean): number {
  for (let i = from; i < target.length; i++) {
    const character = target[i] ?? "";
    if (inQuery ? character === "&" : "/;?".includes(character)) return i;
  }
  return target.length;
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
