/**
 * The order of the matches of routes at one hostname, by which a worker chooses a route and translation finds those that are never chosen
 * (docs/lifecycle.md#4-match-route).
 */
import type { PathMatch, Route, RouteMatch, ValueMatch } from "./ir.ts";

/** A route, as far as its precedence goes. */
export interface Keyed {
  readonly key: string;
  /** `<namespace>/<name>`, with which keys begin. Compared before the key, in which `a-b.00` would sort before `a.00`. */
  readonly label?: string;
  /** Seconds since 1970. */
  readonly createdAt?: number;
}

/** A match of a route, as far as its precedence goes. */
interface RankedMatch {
  readonly route: Keyed;
  /** Index into the route's `matches`. */
  readonly matchIndex: number;
  readonly path: PathMatch;
  /** `lengthOf` the path. */
  readonly length: number;
  readonly method: string | undefined;
  readonly headers: readonly unknown[];
  readonly query: readonly unknown[];
}

type Compare = (a: RankedMatch, b: RankedMatch) => number;

/** The first rule that distinguishes two matches decides; negative = `a` goes first. */
const RULES = [
  { because: "exact path", compare: (a, b) => rank(b.path.type === "exact") - rank(a.path.type === "exact") },
  { because: "longer path", compare: (a, b) => b.length - a.length },
  {
    because: "path prefix before regex",
    compare: (a, b) => rank(a.path.type === "regex") - rank(b.path.type === "regex"),
  },
  { because: "has a method", compare: (a, b) => rank(b.method !== undefined) - rank(a.method !== undefined) },
  { because: "more headers", compare: (a, b) => b.headers.length - a.headers.length },
  { because: "more query parameters", compare: (a, b) => b.query.length - a.query.length },
  { because: "older route", compare: (a, b) => (a.route.createdAt ?? 0) - (b.route.createdAt ?? 0) },
  { because: "route name sorts first", compare: (a, b) => compareText(a.route.label ?? "", b.route.label ?? "") },
  { because: "route key sorts first", compare: (a, b) => compareText(a.route.key, b.route.key) },
  { because: "earlier match", compare: (a, b) => a.matchIndex - b.matchIndex },
] as const satisfies readonly { readonly because: string; readonly compare: Compare }[];

export type PrecedenceRule = (typeof RULES)[number]["because"] | "added earlier";

/** For sorting: negative = `a` goes first; 0 only for matches of two routes with the same key. */
export function compareMatches(a: RankedMatch, b: RankedMatch): number {
  for (const rule of RULES) {
    const order = rule.compare(a, b);
    if (order !== 0) return order;
  }
  return 0;
}

/** Why `winner` goes before `loser`. */
export function whyBefore(winner: RankedMatch, loser: RankedMatch): PrecedenceRule {
  return RULES.find((rule) => rule.compare(winner, loser) !== 0)?.because ?? "added earlier";
}

/** The match with this index of a route. */
export function rankedMatch({ key, namespace, name, createdAt, matches }: Route, matchIndex: number): RankedMatch {
  const { path, method, headers, query } = matches[matchIndex] as RouteMatch;
  const route = { key, label: `${namespace}/${name}`, ...(createdAt !== undefined && { createdAt }) };
  return { route, matchIndex, path, length: lengthOf(path), method, headers, query };
}

/** A text that is equal for matches that the same requests fit. */
export function conditionsOf({ path, method, headers, query }: RouteMatch): string {
  const value = path.type === "pathPrefix" ? withoutTrailingSlashes(path.value) : path.value;
  return JSON.stringify([path.type, value, method, sorted(headers), sorted(query)]);
}

function sorted(matches: readonly ValueMatch[]): readonly string[] {
  return matches.map(({ name, type, value }) => JSON.stringify([name, type, value])).sort();
}

/** Bytes of a path pattern. Trailing slashes of a prefix after the first do not count. */
export function lengthOf({ type, value }: PathMatch): number {
  const prefix = type === "pathPrefix" ? withoutTrailingSlashes(value) : value;
  return Buffer.byteLength(prefix) + (prefix.length < value.length ? 1 : 0);
}

/** `/a//` → `/a`, `/` → ``: trailing slashes mean nothing in a prefix nor in the path it is compared with (reference 2.2). */
export function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path.charCodeAt(end - 1) === 0x2f) end--;
  return path.slice(0, end);
}

function rank(yes: boolean): number {
  return yes ? 1 : 0;
}

/** By UTF-16 code units, whatever the locale. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
