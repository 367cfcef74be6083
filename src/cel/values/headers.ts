/** Header fields as a map that is read by name, without a copy of the fields. */
import { isUtf8 } from "node:buffer";
import { findCookie } from "../../base/cookies.ts";
import { REDACTED } from "../../base/redaction.ts";
import { type Names, SENSITIVE_HEADERS, SensitiveNames } from "../../base/sensitive-names.ts";
import { charge } from "./budget.ts";
import { markRepeated } from "./repeated.ts";
import { CelMapLike, type CelValue } from "./types.ts";

/** The header fields of a message as expressions see them. */
export interface HeaderSource {
  readonly headers: readonly string[];
  /** The value of `host`; undefined for responses. */
  readonly authority?: string;
  /** Lower-case names of the fields that `redacted()` hides. Default: those that are secret everywhere. */
  readonly sensitive?: Names | undefined;
}

/**
 * The value of a name in a view: `plain` the text of the only field, or the list of the values of several; `joined` always one
 * text; `raw` always the list; `split` the list of their comma-separated parts.
 */
export type HeaderShape = "plain" | "joined" | "raw" | "split";

const ALWAYS_SENSITIVE: Names = new SensitiveNames(SENSITIVE_HEADERS);
/** Steps of a field that is decoded, and of each name that is listed. */
const PER_FIELD = 16;
const PER_NAME = 64;

/**
 * The value of field `name` (lower case), a list when the field is repeated, or undefined. Cookies are one value even when a
 * client sends them in several fields (RFC 9113 8.2.3). Scans the list, which for a head's handful of fields costs less than a
 * map would.
 */
export function findHeader(source: HeaderSource, name: string): CelValue | undefined {
  const latin1 = findLatin1(source, name);
  if (latin1 === undefined) return undefined;
  return typeof latin1 === "string" ? decodeUtf8(latin1) : markRepeated(name, latin1.map(decodeUtf8));
}

/** Like findHeader, one character a byte. */
export function findLatin1({ headers, authority }: HeaderSource, name: string): string | string[] | undefined {
  let found: string | string[] | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== name) continue;
    const value = headers[i + 1] as string;
    if (found === undefined) found = value;
    else if (name === "cookie") found = `${found as string}; ${value}`;
    else if (typeof found === "string") found = [found, value];
    else found.push(value);
  }
  return found ?? (name === "host" ? authority : undefined);
}

/** The value of each field called `name`, one character a byte. */
function valuesOf({ headers, authority }: HeaderSource, name: string): readonly string[] {
  const values: string[] = [];
  for (let i = 0; i < headers.length; i += 2) if (headers[i] === name) values.push(headers[i + 1] as string);
  return values.length === 0 && name === "host" && authority !== undefined ? [authority] : values;
}

/**
 * Header text is latin1, one character a byte, while expressions are Unicode. Bytes that are not UTF-8 stay bytes, so that no
 * function of text can take them for something that the backend does not see.
 */
function decodeUtf8(latin1: string): string | Uint8Array {
  charge(PER_FIELD + latin1.length);
  for (let i = 0; i < latin1.length; i++) {
    if (latin1.charCodeAt(i) <= 0x7f) continue;
    const bytes = Buffer.from(latin1, "latin1");
    return isUtf8(bytes) ? bytes.toString("utf8") : bytes;
  }
  return latin1;
}

/** The header fields of a message as a map from lower-case names. */
export class HeadersView extends CelMapLike {
  readonly #source: HeaderSource;
  readonly #shape: HeaderShape;
  /** The names whose values are replaced. Kept by every view that is derived from this one. */
  readonly #hidden: Names | undefined;

  constructor(source: HeaderSource, shape: HeaderShape = "plain", hidden?: Names) {
    super();
    this.#source = source;
    this.#shape = shape;
    this.#hidden = hidden;
  }

  /** The same fields in another view, with the same redaction. */
  as(shape: HeaderShape): HeadersView {
    return new HeadersView(this.#source, shape, this.#hidden);
  }

  /** The same fields without the values of those that are secret. */
  redacted(): HeadersView {
    return new HeadersView(this.#source, this.#shape, this.#source.sensitive ?? ALWAYS_SENSITIVE);
  }

  get(key: CelValue): CelValue | undefined {
    if (typeof key !== "string") return undefined;
    charge(key.length + this.#source.headers.length);
    const name = key.toLowerCase();
    if (this.#hidden?.has(name)) return this.#redactedValue(name);
    if (this.#shape === "plain") return findHeader(this.#source, name);
    const values = valuesOf(this.#source, name);
    if (values.length === 0) return undefined;
    switch (this.#shape) {
      case "joined":
        return decodeUtf8(values.join(name === "cookie" ? "; " : ","));
      case "raw":
        return values.map(decodeUtf8);
      case "split":
        charge(values.reduce((sum, { length }) => sum + length * PER_FIELD, 0));
        return values.flatMap((value) => value.split(",").map((part) => decodeUtf8(part.trim())));
    }
  }

  keys(): readonly string[] {
    const { headers, authority } = this.#source;
    charge(headers.length * PER_NAME);
    const names = new Set<string>(authority === undefined ? [] : ["host"]);
    for (let i = 0; i < headers.length; i += 2) names.add(headers[i] as string);
    return [...names];
  }

  get size(): number {
    return this.keys().length;
  }

  /** The value of the cookie called `name`, without quotes, or undefined. */
  cookie(name: string): string | Uint8Array | undefined {
    const text = findLatin1(this.#source, "cookie");
    if (typeof text !== "string") return undefined;
    charge((text.length + this.#source.headers.length) * 4);
    const value = findCookie(text, headerText(name));
    if (value === undefined) return undefined;
    return this.#hidden?.has("cookie") ? REDACTED : decodeUtf8(value);
  }

  #redactedValue(name: string): CelValue | undefined {
    if (findLatin1(this.#source, name) === undefined) return undefined;
    return this.#shape === "plain" || this.#shape === "joined" ? REDACTED : [REDACTED];
  }
}

/** Text as header lists carry it: one latin1 character for each byte of its UTF-8. ASCII, the usual case, is not copied. */
export function headerText(text: string): string {
  for (let i = 0; i < text.length; i++)
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, "utf8").toString("latin1");
  return text;
}
