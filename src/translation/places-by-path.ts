/** Which match gets a path, as far as matches without further conditions decide it. */
import { lengthOf } from "../ir/precedence.ts";
import { type HttpPlace, isConditional, matchAt, type Place, pathText } from "./linted-route.ts";

/** Matches of one host that ask for a path only: they take every request that no match with more conditions selects. */
export interface Unconditional {
  readonly exact: Map<string, HttpPlace>;
  /** By their texts without slashes at the end. */
  readonly prefixes: Map<string, HttpPlace>;
  /** The length of the longest expression, which decides its precedence, by what a path must begin with to fit it. */
  readonly regexes: Map<string, number>;
}

export function unconditionalPlaces(winners: Iterable<Place>): ReadonlyMap<string, Unconditional> {
  const all = new Map<string, Unconditional>();
  for (const place of winners) {
    if (place.match === undefined) continue;
    const match = matchAt(place);
    if (isConditional(match)) continue;
    const { path } = match;
    const atHost: Unconditional = all.get(place.host) ?? { exact: new Map(), prefixes: new Map(), regexes: new Map() };
    all.set(place.host, atHost);
    if (path.type === "exact") atHost.exact.set(path.value, place);
    else if (path.type === "pathPrefix") atHost.prefixes.set(pathText(path), place);
    else {
      const literal = literalStart(path.value);
      atHost.regexes.set(literal, Math.max(lengthOf(path), atHost.regexes.get(literal) ?? 0));
    }
  }
  return all;
}

/** The characters that every text that fits an expression begins with. */
function literalStart(regex: string): string {
  if (regex.includes("|")) return "";
  const [, literal = "", next = ""] = /^\^?([\w/~@%&=:;,!' -]*)(.?)/.exec(regex) ?? [];
  return /[*?{]/.test(next) ? literal.slice(0, -1) : literal;
}

/** The match that a request for the path gets if its conditions select no other; undefined also if an expression may take it. */
export function nearest(all: ReadonlyMap<string, Unconditional>, host: string, path: string): HttpPlace | undefined {
  for (const name of namesOf(host)) {
    const { exact, prefixes, regexes } = all.get(name) ?? NOTHING;
    const found = exact.get(path);
    if (found !== undefined) return found;
    const prefix = [...parentsOf(path)].find((each) => prefixes.has(each));
    const length = prefix === undefined ? 0 : lengthOf({ type: "pathPrefix", value: prefix });
    for (let end = 0; regexes.size > 0 && end <= path.length; end++)
      if ((regexes.get(path.slice(0, end)) ?? 0) > length) return undefined;
    if (prefix !== undefined) return prefixes.get(prefix);
  }
  return undefined;
}

const NOTHING: Unconditional = { exact: new Map(), prefixes: new Map(), regexes: new Map() };

/** A path, then the prefixes around it, the longest first. */
export function* parentsOf(path: string): Generator<string> {
  for (let at = path; at !== "" && at !== "/"; at = at.slice(0, at.lastIndexOf("/"))) yield at;
  yield "/";
}

/** The names that fit a host or wildcard, the most specific first. */
function* namesOf(host: string): Generator<string> {
  yield host;
  for (let at = host.indexOf(".", host.startsWith("*.") ? 2 : 0); at !== -1; at = host.indexOf(".", at + 1))
    yield `*${host.slice(at)}`;
  if (host !== "") yield "";
}
