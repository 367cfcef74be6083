/**
 * Findings about the routes of one listener or route group together: those that others keep from requests, and those that lead past the
 * authentication of others. Routes are compared by host and path, never each with each other.
 */
import type { Listener, PathMatch, Route, RouteMatch, TcpRoute } from "../ir/ir.ts";
import { compareMatches, conditionsOf, rankedMatch, withoutTrailingSlashes } from "../ir/precedence.ts";
import type { PolicyKind, PolicySet } from "../policies/policy-set.ts";
import type { Target } from "../upstream/settings/target.ts";
import type { Found } from "./problems/lint-table.ts";

type AnyRoute = Route | TcpRoute;

/** A route, or one of its matches. */
export interface RoutePlace {
  readonly route: AnyRoute;
  /** Index into its matches; undefined = all of it. */
  readonly match?: number | undefined;
}

type RouteLint =
  | "shadowed-route"
  | "unreachable-match"
  | "unreachable-hostname"
  | "impossible-match"
  | "bypassed-authentication";

/** One finding, for files and for objects of Kubernetes. */
export type RouteFinding = RoutePlace &
  {
    readonly [Code in RouteLint]: {
      readonly code: Code;
      readonly found: Found<Code>;
      /** What the field of the match is, such as `headers`. */
      readonly field?: "hostnames" | "headers" | "query";
      readonly related: readonly (RoutePlace & { readonly message: string })[];
    };
  }[RouteLint];

/** One match of a route at one host; of a route of connections or sessions all of it. */
type Place = (HttpPlace | ConnectionPlace) & {
  /** Where requests arrive: the narrower of the route's and the listener's hostname; `` = all hosts. */
  readonly host: string;
  /** As the route has it. Of equal matches at a host, that of the longer name goes first. */
  readonly written: string;
  /** Equal for places that take the same requests or connections. */
  readonly slot: string;
};
interface HttpPlace {
  readonly route: Route;
  readonly match: number;
}
interface ConnectionPlace {
  readonly route: TcpRoute;
  readonly match: undefined;
}

/** A route as lints compare it: made once, compared whenever another route of its listener changes. */
export interface LintedRoute {
  readonly route: AnyRoute;
  /** None: the listener takes none of its hosts. */
  readonly places: readonly Place[];
}

/** Regular expressions that fit every path. */
const EVERY_PATH = /^\^?(?:\/?\.[*+]|\/\?\.\*)\$?$/;

/** `hostname`: that of the listener. */
export function lintedRoute(route: AnyRoute, hostname: string): LintedRoute {
  const hosts = hostsOf(route, hostname === "*" ? "" : hostname);
  const places = hosts.flatMap((at): Place[] => {
    if (!("matches" in route)) return [{ route, match: undefined, ...at, slot: at.host }];
    return route.matches.map((each, match) => ({ route, match, ...at, slot: `${at.host} ${conditionsOf(each)}` }));
  });
  return { route, places };
}

function hostsOf({ hostnames }: AnyRoute, listener: string): Pick<Place, "host" | "written">[] {
  const written = hostnames.length === 0 ? [""] : hostnames.map((name) => (name === "*" ? "" : name));
  return written.flatMap((name) => {
    if (!meet(name, listener)) return [];
    return { host: isWithin(name, listener) ? name : listener, written: name };
  });
}

/**
 * Findings about the routes of one listener or route group; those of connections or UDP sessions in their order. `nameOf` says to the
 * readers of another route who wins over it.
 */
export function lintRoutes(
  { hostname, policies }: Pick<Listener, "hostname" | "policies">,
  linted: readonly LintedRoute[],
  nameOf: (winner: RoutePlace, loser: AnyRoute) => string,
): RouteFinding[] {
  const places = linted.flatMap((each) => each.places);
  const findings = linted.flatMap(({ route, places: { length } }): RouteFinding[] => {
    const isHttp = "matches" in route;
    if (length === 0 && !(isHttp && route.matches.length === 0))
      return [{ route, code: "unreachable-hostname", found: [hostname], field: "hostnames", related: [] }];
    return isHttp ? impossibleMatches(route) : [];
  });
  findings.push(...shadowed(places, nameOf));
  // What protects the whole listener protects every route.
  if (authenticationOf(policies) === undefined) findings.push(...bypasses(places, nameOf));
  return findings;
}

// ── precedence ──

function shadowed(places: readonly Place[], nameOf: Parameters<typeof lintRoutes>[2]): RouteFinding[] {
  const winners = new Map<string, Place>();
  for (const place of places) {
    const other = winners.get(place.slot);
    if (other === undefined || goesBefore(place, other)) winners.set(place.slot, place);
  }
  const wide = Map.groupBy([...winners.values()].filter(takesEverything), ({ host }) => host);
  const lost = new Map<Place, Place>();
  for (const place of places) {
    const winner = winners.get(place.slot);
    const wider = winner === place ? wide.get(place.host)?.find((each) => outranks(each, place)) : winner;
    if (wider !== undefined) lost.set(place, wider);
  }
  const losing = new Set([...lost.keys()].map(({ route }) => route));
  const findings: RouteFinding[] = [];
  for (const [route, own] of Map.groupBy(
    places.filter((place) => losing.has(place.route)),
    (place) => place.route,
  )) {
    const losers = own.filter((place) => lost.has(place));
    const others = losers.flatMap((place) => lost.get(place) ?? []).filter((winner) => winner.route !== route);
    if (losers.length === own.length && others.length > 0) {
      const winners = [...new Map(others.map((winner) => [winner.route, { route: winner.route }])).values()];
      const names = [...new Set(winners.map((winner) => nameOf(winner, route)))].sort();
      const related = winners.map((winner) => ({ ...winner, message: "wins instead" }));
      findings.push({ route, code: "shadowed-route", found: [names], related });
      continue;
    }
    for (const [match, each] of Map.groupBy(own, (place) => place.match)) {
      const winner = each.every((place) => lost.has(place)) ? lost.get(each[0] as Place) : undefined;
      if (winner === undefined || match === undefined) continue;
      const related = [{ route: winner.route, match: winner.match, message: "wins instead" }];
      findings.push({ route, match, code: "unreachable-match", found: [nameOf(winner, route)], related });
    }
  }
  return findings;
}

/** Of two places of a slot: the hostname of the route decides first. Of routes of connections the first that has it wins. */
function goesBefore(a: Place, b: Place): boolean {
  return a.written === b.written ? outranks(a, b) : specificity(a) > specificity(b);
}

/** Higher = decides first: a host, then the longer of two wildcards. */
function specificity({ written }: Place): number {
  return written.startsWith("*") ? written.length : written === "" ? 0 : Number.POSITIVE_INFINITY;
}

/** A match without conditions, by an expression that fits every path: longer than most paths, so it goes before them. */
function takesEverything(place: Place): boolean {
  if (place.match === undefined) return false;
  const match = matchAt(place);
  return match.path.type === "regex" && EVERY_PATH.test(match.path.value) && !isConditional(match);
}

function outranks(a: Place, b: Place): boolean {
  if (a.written !== b.written || a.match === undefined || b.match === undefined) return false;
  return compareMatches(rankedMatch(a.route, a.match), rankedMatch(b.route, b.match)) < 0;
}

function matchAt({ route, match }: HttpPlace): RouteMatch {
  return route.matches[match] as RouteMatch;
}

function isConditional({ method, headers, query }: RouteMatch): boolean {
  return method !== undefined || headers.length + query.length > 0;
}

function pathText({ type, value }: PathMatch): string {
  return type === "pathPrefix" ? withoutTrailingSlashes(value) || "/" : value;
}

// ── matches that no request meets ──

function impossibleMatches(route: Route): RouteFinding[] {
  return route.matches.flatMap((match, i): RouteFinding[] => {
    const method = match.headers.find(({ name, type }) => name === ":method" && type === "exact");
    if (match.method !== undefined && method !== undefined && method.value !== match.method) {
      const why = `the method cannot be both ${match.method} and ${method.value}`;
      return [{ route, match: i, code: "impossible-match", found: [why], field: "headers", related: [] }];
    }
    for (const field of ["headers", "query"] as const) {
      const contradiction = contradictionIn(match[field], field);
      if (contradiction !== undefined)
        return [{ route, match: i, code: "impossible-match", found: [contradiction], field, related: [] }];
    }
    return [];
  });
}

/** Two values for something that has one. A header may occur twice; of a query parameter the last value counts. */
function contradictionIn(list: RouteMatch["headers"], field: "headers" | "query"): string | undefined {
  const seen = new Map<string, string>();
  for (const { name, type, value } of list) {
    if (type !== "exact" || (field === "headers" && !name.startsWith(":"))) continue;
    const other = seen.get(name);
    if (other !== undefined && other !== value) return `${name} cannot be both ${other} and ${value}`;
    seen.set(name, value);
  }
  return undefined;
}

// ── ways past authentication ──

const AUTHENTICATION = [
  "jwtAuth",
  "oidc",
  "basicAuth",
  "apiKey",
  "extAuthz",
  "authorization",
] as const satisfies readonly PolicyKind[];

function authenticationOf(policies: PolicySet): PolicyKind | undefined {
  return AUTHENTICATION.find((kind) => policies[kind] !== undefined);
}

/**
 * Matches that demand credentials only under conditions, or of an exact path, where the nearest broader route has no such policy and
 * leads to the same backend: `POST /admin` where only `GET /admin` is protected, or `/admin/` beside `/admin`.
 */
function bypasses(places: readonly Place[], nameOf: Parameters<typeof lintRoutes>[2]): RouteFinding[] {
  const http = places.filter((place) => place.match !== undefined);
  const guarded = http.filter(({ route }) => authenticationOf(route.policies) !== undefined);
  if (guarded.length === 0) return [];
  const broad = new Map<string, Place & HttpPlace>();
  for (const place of http) {
    const match = matchAt(place);
    if (match.path.type !== "pathPrefix" || isConditional(match)) continue;
    const key = `${place.host} ${pathText(match.path)}`;
    const other = broad.get(key);
    if (other === undefined || goesBefore(place, other)) broad.set(key, place);
  }
  const found = new Map<string, RouteFinding>();
  for (const place of guarded) {
    const { host, route, match } = place;
    const kind = authenticationOf(route.policies);
    const condition = matchAt(place);
    const { path } = condition;
    if (kind === undefined || path.type === "regex" || (path.type === "pathPrefix" && !isConditional(condition)))
      continue;
    const open = nearest(host, pathText(path), broad);
    if (open === undefined || open.route === route || authenticationOf(open.route.policies) !== undefined) continue;
    const targets = new Set(targetsOf(open.route));
    if (!targetsOf(route).some((target) => targets.has(target))) continue;
    const related = [{ route: open.route, match: open.match, message: `has no ${kind}` }];
    const code = "bypassed-authentication";
    found.set(`${route.key} ${match}`, { route, match, code, found: [kind, nameOf(open, route)], related });
  }
  return [...found.values()];
}

/** The match that a request for the path gets if its conditions select no other. */
function nearest(host: string, path: string, broad: ReadonlyMap<string, HttpPlace>): HttpPlace | undefined {
  for (let at = path; ; at = at.slice(0, at.lastIndexOf("/")) || "/") {
    const place = broad.get(`${host} ${at}`);
    if (place !== undefined || at === "/" || !at.startsWith("/")) return place;
  }
}

/** Backends that requests can be sent to, as texts that are equal for the same place. */
function targetsOf({ backends }: Route): string[] {
  const isFixed = ({ type }: Target): boolean => type === "static" || type === "unix" || type === "service";
  return backends
    .filter(({ weight, target }) => weight > 0 && isFixed(target))
    .map(({ target }) => JSON.stringify(target));
}

// ── hosts ──

/** Whether a host can fit both names; a name is a host, `*.` with a host, or nothing for all hosts. */
export function meet(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one);
}

/** Whether every host that fits `narrow` fits `wide`. */
function isWithin(narrow: string, wide: string): boolean {
  if (wide === "" || wide === "*" || narrow === wide) return true;
  return wide.startsWith("*") && narrow !== "" && narrow !== "*" && narrow.endsWith(wide.slice(1));
}
