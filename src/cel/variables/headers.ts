import { SENSITIVE_HEADERS, SensitiveNames } from "../../base/sensitive-names.ts";
import { charge } from "../evaluate/budget.ts";
import { CelMapLike, type CelValue } from "../values/types.ts";

/** The header fields of a message as expressions see them. */
export interface HeaderSource {
  readonly headers: readonly string[];
  /** The value of `host`; undefined for responses. */
  readonly authority?: string;
  /** Lower-case names of the fields that `redacted()` hides. Default: those that are secret everywhere. */
  readonly sensitive?: Names | undefined;
}

/** A set of names, of which nothing else is asked. */
export type Names = Pick<ReadonlySet<string>, "has">;

/** What a view gives for a name: one text, the list of the fields' values, or the list of their comma-separated parts. */
export type HeaderShape = "joined" | "raw" | "split";

const ALWAYS_SENSITIVE: Names = new SensitiveNames(SENSITIVE_HEADERS);
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
  readonly #shape: HeaderShape;
  /** The names whose values are replaced. Kept by every view that is derived from this one. */
  readonly #hidden: Names | undefined;

  constructor(source: HeaderSource, shape: HeaderShape = "joined", hidden?: Names) {
    super();
    this.#source = source;
    this.#shape = shape;
    this.#hidden = hidden;
  }

  /** The same fields in another shape; what is redacted stays redacted. */
  as(shape: HeaderShape): HeadersView {
    return new HeadersView(this.#source, shape, this.#hidden);
  }

  /** The same fields without the values of those that are secret. */
  redacted(): HeadersView {
    return new HeadersView(this.#source, this.#shape, this.#source.sensitive ?? ALWAYS_SENSITIVE);
  }

  get(key: CelValue): CelValue | undefined {
    if (typeof key !== "string") return undefined;
    const name = key.toLowerCase();
    if (this.#hidden?.has(name)) return this.#redactedValue(name);
    if (this.#shape === "joined") return findHeader(this.#source, name);
    const values = this.#values(name);
    if (values.length === 0) return undefined;
    return this.#shape === "raw" ? values : values.flatMap((value) => value.split(",").map((part) => part.trim()));
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
    const value = text === undefined ? undefined : findCookie(text, name);
    return value !== undefined && this.#hidden?.has("cookie") ? REDACTED : value;
  }

  #redactedValue(name: string): CelValue | undefined {
    if (findLatin1(this.#source, name) === undefined) return undefined;
    return this.#shape === "joined" ? REDACTED : [REDACTED];
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
