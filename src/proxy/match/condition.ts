/** The conditions of a match: path, method, headers, query; regular expressions with a bound on their time. */
import { RE2JS } from "re2js";
import { GatewayError, messageOf } from "../../base/errors.ts";
import { REDACTED } from "../../base/redaction.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import type { ValueMatch } from "../../ir/ir.ts";

/** A user's regular expression, which RE2 matches in linear time, without backtracking. */
export type Pattern = Pick<RE2JS, "testExact">;

/**
 * Limit of characters times instructions of the pattern for one comparison: 10 ms at the 40 ns that each takes when the table of states does
 * not fit. `(a?){1000}a{1000}` would block a worker for half a second with a header of 8 KiB.
 */
const MOST_WORK = 250_000;

/** A pattern whose comparisons are bounded: a request with a longer text is rejected, because it is unknown whether it matches. */
class BoundedPattern implements Pattern {
  readonly #pattern: RE2JS;
  readonly #longest: number;

  constructor(pattern: RE2JS) {
    this.#pattern = pattern;
    this.#longest = MOST_WORK / pattern.programSize();
  }

  /** Throws TG_INVALID_REQUEST. */
  testExact(text: string): boolean {
    if (text.length > this.#longest)
      throw new GatewayError(
        "TG_INVALID_REQUEST",
        `a value of ${text.length} characters is too long for the pattern of a route, which takes ${Math.floor(this.#longest)}`,
      );
    return this.#pattern.testExact(text);
  }
}

/** What is not known of the values that routes match on; only in rehearsals. */
export interface UnknownValues {
  /** Whether a value that is not known fits a condition. */
  fits(of: "header" | "query", wanted: ValueMatch): boolean;
  /** Whether a request in which it is absent may have had this header field or query parameter. */
  mayHave(of: "header" | "query", name: string): boolean;
}

/** Compiles each distinct pattern once: thousands of routes often share a few. */
export class Patterns {
  readonly unknown: UnknownValues | undefined;
  readonly #compiled = new Map<string, Pattern>();

  constructor(unknown?: UnknownValues) {
    this.unknown = unknown;
  }

  /** Throws an error that begins with `where` when `source` is not RE2 syntax. */
  get(source: string, where: string): Pattern {
    let pattern = this.#compiled.get(source);
    if (pattern === undefined) {
      try {
        pattern = new BoundedPattern(RE2JS.compile(source));
      } catch (cause) {
        const why = messageOf(cause);
        throw new Error(`${where}: ${why}; write it in RE2 syntax`, { cause });
      }
      this.#compiled.set(source, pattern);
    }
    return pattern;
  }
}

/** A condition on one header field or query parameter. */
export interface Condition {
  readonly name: string;
  readonly accepts: (value: string) => boolean;
  /** Only in rehearsals: whether a request without the value may have had one; `fits` then says whether it fits. */
  readonly unknown: { readonly mayHave: () => boolean; readonly fits: () => boolean } | undefined;
  readonly source: ValueMatch;
}

export function compileHeader(source: ValueMatch, patterns: Patterns, where: string): Condition {
  const name = source.name.toLowerCase();
  if (source.type === "exact") {
    // Header text is latin1, one character a byte, while configurations are UTF-8.
    const wanted = Buffer.from(source.value, "utf8").toString("latin1");
    return condition("header", name, source, (value) => value === wanted, patterns);
  }
  const pattern = patterns.get(source.value, `${where}: header ${name}`);
  return condition("header", name, source, (value) => pattern.testExact(decodeUtf8(value)), patterns);
}

export function compileQuery(source: ValueMatch, patterns: Patterns, where: string): Condition {
  const { name, value: wanted } = source;
  if (source.type === "exact") return condition("query", name, source, (value) => value === wanted, patterns);
  const pattern = patterns.get(wanted, `${where}: query ${name}`);
  return condition("query", name, source, (value) => pattern.testExact(value), patterns);
}

function condition(
  of: "header" | "query",
  name: string,
  source: ValueMatch,
  accepts: Condition["accepts"],
  { unknown }: Patterns,
): Condition {
  if (unknown === undefined) return { name, source, accepts, unknown };
  const fits = (): boolean => unknown.fits(of, source);
  return {
    name,
    source,
    accepts: (value) => (value.includes(REDACTED) ? fits() : accepts(value)),
    unknown: { mayHave: () => unknown.mayHave(of, name), fits },
  };
}

/** Whether a condition is met by a request in which its value is absent. */
export function holdsAbsent({ unknown }: Condition): boolean {
  return unknown?.mayHave() === true && unknown.fits();
}

/**
 * Whether any field line called `condition.name` is accepted; each line is tried by itself
 * (docs/configuration.md#routematchheaders).
 */
export function headerHolds(condition: Condition, request: HttpRequest): boolean {
  const pseudo = pseudoHeader(condition.name, request);
  if (pseudo !== undefined) return condition.accepts(pseudo);
  const { headers } = request;
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] === condition.name && condition.accepts(headers[i + 1] as string)) return true;
  }
  return holdsAbsent(condition);
}

/** All values of a header or pseudo header, in the order of the request. */
export function headerValues(name: string, request: HttpRequest): string[] {
  const pseudo = pseudoHeader(name, request);
  if (pseudo !== undefined) return [pseudo];
  const { headers } = request;
  return headers.filter((_, i) => i % 2 === 1 && headers[i - 1] === name);
}

/** The value of a pseudo header; `host` is one too, since requests carry it as their authority. */
function pseudoHeader(name: string, request: HttpRequest): string | undefined {
  switch (name) {
    case ":method":
      return request.method;
    case ":scheme":
      return request.scheme;
    case ":authority":
    case "host":
      return request.authority;
    case ":path":
      return pathOf(request) + request.search;
    default:
      return undefined;
  }
}

/** The path that routes are matched against: that of CONNECT, which has none, counts as `/` (reference 2.2). */
export function pathOf(request: HttpRequest): string {
  return request.path === "" && request.method === "CONNECT" ? "/" : request.path;
}

function decodeUtf8(latin1: string): string {
  return /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, "latin1").toString("utf8") : latin1;
}

const NONE: ReadonlyMap<string, string> = new Map();

/** The last query string parsed: many routes may look at the query of one request. */
let lastSearch = "";
let lastValues = NONE;

/**
 * The parameters of a query string (`` or beginning with `?`), form-urlencoded; of duplicate names the last value counts
 * (docs/configuration.md#routematch).
 */
export function queryValues(search: string): ReadonlyMap<string, string> {
  if (search !== lastSearch) {
    lastValues = new Map(new URLSearchParams(search));
    lastSearch = search;
  }
  return lastValues;
}
