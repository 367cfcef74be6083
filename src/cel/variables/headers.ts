import { charge } from "../evaluate/budget.ts";
import { CelMapLike, type CelValue } from "../values/types.ts";

/** A message's fields as expressions see them; `authority` is what `host` gives, undefined for responses. */
export interface HeaderSource {
  readonly headers: readonly string[];
  readonly authority?: string;
}

/** How a view shows the values of a field. */
export type HeaderMode = "joined" | "raw" | "split" | "redacted";

/** Fields whose values are secrets (RFC 9110 11.6.2, 11.7.1; RFC 6265), and the customary one of API keys. */
const SECRET = new Set(["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"]);
const REDACTED = "<redacted>";

/**
 * The value of field `name` (lower case) as text, or undefined: repeated fields are joined by `, ` (RFC 9110 5.3), cookies by
 * `; ` (RFC 9113 8.2.3). Scans the list, which for a head's handful of fields costs less than a map would.
 */
export function findHeader(source: HeaderSource, name: string): string | undefined {
  const latin1 = findLatin1(source, name);
  return latin1 === undefined ? undefined : decodeUtf8(latin1);
}

/** Like findHeader, one character a byte. */
export function findLatin1({ headers, authority }: HeaderSource, name: string): string | undefined {
  let found: string | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== name) continue;
    const value = headers[i + 1] as string;
    found = found === undefined ? value : `${found}${name === "cookie" ? "; " : ", "}${value}`;
  }
  return found ?? (name === "host" ? authority : undefined);
}

/** Header text is latin1, one character a byte, while expressions are Unicode. */
export function decodeUtf8(latin1: string): string {
  charge(latin1.length);
  for (let i = 0; i < latin1.length; i++)
    if (latin1.charCodeAt(i) > 0x7f) return Buffer.from(latin1, "latin1").toString("utf8");
  return latin1;
}

/** The header fields of a message as a map from lower-case names. */
export class HeadersView extends CelMapLike {
  readonly #source: HeaderSource;
  readonly #mode: HeaderMode;

  constructor(source: HeaderSource, mode: HeaderMode) {
    super();
    this.#source = source;
    this.#mode = mode;
  }

  /** The same fields, shown otherwise. */
  as(mode: HeaderMode): HeadersView {
    return new HeadersView(this.#source, mode);
  }

  get(key: CelValue): CelValue | undefined {
    if (typeof key !== "string") return undefined;
    const name = key.toLowerCase();
    if (this.#mode === "joined") return findHeader(this.#source, name);
    if (this.#mode === "redacted")
      return SECRET.has(name) && this.#has(name) ? REDACTED : findHeader(this.#source, name);
    const values = this.#values(name);
    if (values.length === 0) return undefined;
    return this.#mode === "raw" ? values : values.flatMap((value) => value.split(",").map((part) => part.trim()));
  }

  keys(): readonly string[] {
    const { headers, authority } = this.#source;
    const names = new Set<string>(authority === undefined ? [] : ["host"]);
    for (let i = 0; i < headers.length; i += 2) names.add(headers[i] as string);
    return [...names];
  }

  get size(): number {
    return this.keys().length;
  }

  /** The value of the cookie called `name`, without quotes, or undefined. */
  cookie(name: string): string | undefined {
    const text = findHeader(this.#source, "cookie");
    return text === undefined ? undefined : findCookie(text, name);
  }

  #has(name: string): boolean {
    return findLatin1(this.#source, name) !== undefined;
  }

  #values(name: string): readonly string[] {
    const { headers, authority } = this.#source;
    const values: string[] = [];
    for (let i = 0; i < headers.length; i += 2)
      if (headers[i] === name) values.push(decodeUtf8(headers[i + 1] as string));
    return values.length === 0 && name === "host" && authority !== undefined ? [authority] : values;
  }
}

/** RFC 6265 5.4: pairs with `; ` between; the first of the name counts. */
export function findCookie(text: string, name: string): string | undefined {
  for (let at = 0; at < text.length; ) {
    while (text[at] === " ") at++;
    const semicolon = text.indexOf(";", at);
    const end = semicolon === -1 ? text.length : semicolon;
    if (text.startsWith(name, at) && text[at + name.length] === "=") {
      const value = text.slice(at + name.length + 1, end).trim();
      return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
    }
    at = end + 1;
  }
  return undefined;
}
