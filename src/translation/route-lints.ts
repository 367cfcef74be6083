/**
 * Findings about the routes of one listener or route group together: those that others keep from requests, and those that lead past the
 * authentication of others. Routes are compared by host and path, never each with each other.
 */
import type { PathMatch, Route, RouteMatch, TcpRoute } from "../ir/ir.ts";
import { compareMatches, conditionsOf, lengthOf, rankedMatch, withoutTrailingSlashes } from "../ir/precedence.ts";
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
type RouteFinding = RoutePlace &
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
  /** It takes every path, by an expression that goes before most of them because it is longer. */
  readonly isWide: boolean;
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
  /** What is found in the route alone. */
  readonly findings: readonly RouteFinding[];
  /** What demands credentials. */
  readonly guard?: PolicyKind | undefined;
}

/** Regular expressions that fit every path. */
const EVERY_PATH = /^\^?(?:\/?\.[*+]|\/\?\.\*)\$?$/;

/** `hostname`: that of the listener. */
export function lintedRoute(route: AnyRoute, hostname: string): LintedRoute {
  const hosts = hostsOf(route, hostname === "*" ? "" : hostname);
  if (hosts.length === 0)
    return {
      route,
      places: [],
      findings: [{ route, code: "unreachable-hostname", found: [hostname], field: "hostnames", related: [] }],
    };
  if (!("matches" in route))
    return {
      route,
      places: hosts.map((at) => ({ route, match: undefined, ...at, slot: at.host, isWide: false })),
      findings: [],
    };
  const places = hosts.flatMap((at) =>
    route.matches.map((each, match): Place => {
      const isWide = each.path.type === "regex" && EVERY_PATH.test(each.path.value) && !isConditional(each);
      return { route, match, ...at, slot: slotAt(at.host, each), isWide };
    }),
  );
  return { route, places, findings: impossibleMatches(route), guard: authenticationOf(route.policies) };
}

function slotAt(host: string, match: RouteMatch): string {
  return `${host} ${conditionsOf(match)}`;
}

function hostsOf({ hostnames }: AnyRoute, listener: string): Pick<Place, "host" | "written">[] {
  const written = hostnames.length === 0 ? [""] : hostnames.map((name) => (name === "*" ? "" : name));
  return written.flatMap((name) => {
    if (!meet(name, listener)) return [];
    return { host: isWithin(name, listener) ? name : listener, written: name };
  });
}

/** How a finding calls the match that wins over another route, or that leads past its authentication. */
export type NameOf = (winner: RoutePlace, loser: AnyRoute) => string;

/** Findings about the routes of one listener or route group; those of connections or UDP sessions in their order. */
export function lintRoutes(policies: PolicySet, routes: readonly LintedRoute[], nameOf: NameOf): RouteFinding[] {
  const { winners, lost } = contest(routes);
  const findings = routes.flatMap((route) => route.findings);
  if (lost.size > 0) findings.push(...routes.flatMap((route) => shadowed(route, lost, nameOf)));
  // What protects the whole listener protects every route.
  if (authenticationOf(policies) === undefined) findings.push(...bypasses(routes, winners, nameOf));
  return findings;
}

// ── precedence ──

/** Who wins each slot, and who wins over those that lose. */
function contest(routes: readonly LintedRoute[]): { winners: Map<string, Place>; lost: Map<Place, Place> } {
  const winners = new Map<string, Place>();
  const losers: Place[] = [];
  const wide: Place[] = [];
  for (const { places } of routes)
    for (const place of places) {
      if (place.isWide) wide.push(place);
      const other = winners.get(place.slot);
      const wins = other === undefined || goesBefore(place, other);
      if (wins) winners.set(place.slot, place);
      if (other !== undefined) losers.push(wins ? other : place);
    }
  const lost = new Map(losers.map((place) => [place, winners.get(place.slot) ?? place]));
  if (wide.length === 0) return { winners, lost };
  const wideAt = Map.groupBy(wide, ({ host }) => host);
  for (const place of winners.values()) {
    const wider = wideAt.get(place.host)?.find((each) => outranks(each, place));
    if (wider !== undefined) lost.set(place, winners.get(wider.slot) ?? wider);
  }
  return { winners, lost };
}

function shadowed({ route, places }: LintedRoute, lost: ReadonlyMap<Place, Place>, nameOf: NameOf): RouteFinding[] {
  const winners = places.flatMap((place) => lost.get(place) ?? []);
  const others = [...new Set(winners.map((winner) => winner.route))].filter((other) => other !== route);
  if (winners.length > 0 && winners.length === places.length && others.length > 0) {
    const names = [...new Set(others.map((other) => nameOf({ route: other }, route)))].sort();
    const related = others.map((other) => ({ route: other, message: "wins instead" }));
    return [{ route, code: "shadowed-route", found: [names], related }];
  }
  if (winners.length === 0) return [];
  return [...Map.groupBy(places, ({ match }) => match)].flatMap(([match, at]): RouteFinding[] => {
    const [winner] = at.every((place) => lost.has(place)) ? at.flatMap((place) => lost.get(place) ?? []) : [];
    if (winner === undefined || match === undefined) return [];
    const related = [{ route: winner.route, match: winner.match, message: "wins instead" }];
    return [{ route, match, code: "unreachable-match", found: [nameOf(winner, route)], related }];
  });
}

/** Of two places of a slot: the hostname of the route decides first. Of routes of connections the first that has it wins. */
function goesBefore(a: Place, b: Place): boolean {
  return a.written === b.written ? outranks(a, b) : specificity(a) > specificity(b);
}

/** Higher = decides first: a host, then the longer of two wildcards. */
function specificity({ written }: Place): number {
  return written.startsWith("*") ? written.length : written === "" ? 0 : Number.POSITIVE_INFINITY;
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

/** How a request gets past what a match demands. */
interface Bypass {
  readonly open: HttpPlace;
  /** The path of such a request. */
  readonly request: string;
  /** As the open route sends it. */
  readonly sent: string;
}

/**
 * Requests that get to what a match protects without what it demands: those for the same path that it does not select, such as
 * `POST /admin` beside a protected `GET /admin`, and those that another route rewrites to that path. Both lead to the same backend. What
 * backends do with other hosts is not known, so a route of another host is not taken for a way past.
 */
function bypasses(routes: readonly LintedRoute[], winners: ReadonlyMap<string, Place>, nameOf: NameOf): RouteFinding[] {
  const guarded = routes.filter(({ guard }) => guard !== undefined);
  if (guarded.length === 0) return [];
  const all = unconditionalPlaces(winners.values());
  const rewriting = rewritingPlaces(all);
  const found = new Map<string, RouteFinding>();
  for (const { places, guard = "" } of guarded)
    for (const place of places) {
      if (place.match === undefined) continue;
      const { route, match } = place;
      const bypass = besides(place, all) ?? byRewriting(place, all, rewriting);
      if (bypass === undefined) continue;
      const { open, request, sent } = bypass;
      const related = [{ route: open.route, match: open.match, message: `has no ${guard}` }];
      const code = "bypassed-authentication";
      found.set(`${route.key} ${match}`, {
        route,
        match,
        code,
        found: [guard, nameOf(open, route), request, sent],
        related,
      });
    }
  return [...found.values()];
}

/** Matches of one host that ask for a path only: they take every request that no match with more conditions selects. */
interface Unconditional {
  readonly exact: Map<string, HttpPlace>;
  /** By their texts without slashes at the end. */
  readonly prefixes: Map<string, Place & HttpPlace>;
  /** The length of the longest expression, which decides its precedence, by what a path must begin with to fit it. */
  readonly regexes: Map<string, number>;
}

function unconditionalPlaces(winners: Iterable<Place>): ReadonlyMap<string, Unconditional> {
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

/** For the path of a match, or `/admin/` if it is the path `/admin`. */
function besides(place: Place & HttpPlace, all: ReadonlyMap<string, Unconditional>): Bypass | undefined {
  const match = matchAt(place);
  const request = isConditional(match) ? pathText(match.path) : pathBesides(match.path);
  if (request === undefined || (match.path.type === "regex" && isConditional(match))) return undefined;
  const open = nearest(all, place.host, request);
  return open !== undefined && isOpen(open, place) ? { open, request, sent: request } : undefined;
}

/** A path that users may take for protected too, although the match does not select it. */
function pathBesides({ type, value }: PathMatch): string | undefined {
  if (type === "regex") return PARENT_OF_ALL.exec(value)?.[1];
  if (type === "pathPrefix" || value === "/") return undefined;
  return value.endsWith("/") ? value.slice(0, -1) : `${value}/`;
}

/** An expression for all paths below another one, but not for that itself: `/admin/.*`. */
const PARENT_OF_ALL = /^\^?((?:\/[\w-]+)+)\/\.[*+]\$?$/;

/** Places of routes that replace their prefix, by the prefix that they send. */
function rewritingPlaces(all: ReadonlyMap<string, Unconditional>): ReadonlyMap<string, readonly (Place & HttpPlace)[]> {
  return Map.groupBy(
    [...all.values()]
      .flatMap(({ prefixes }) => [...prefixes.values()])
      .filter(({ route }) => replacedPrefix(route) !== undefined),
    ({ route }) => replacedPrefix(route) ?? "",
  );
}

/** By a route whose prefix becomes one that the path of the match begins with. */
function byRewriting(
  place: Place & HttpPlace,
  all: ReadonlyMap<string, Unconditional>,
  rewriting: ReadonlyMap<string, readonly (Place & HttpPlace)[]>,
): Bypass | undefined {
  const { path } = matchAt(place);
  if (rewriting.size === 0 || path.type === "regex") return undefined;
  const goal = (path.type === "pathPrefix" ? replacedPrefix(place.route) : undefined) ?? pathText(path);
  for (const parent of parentsOf(goal))
    for (const open of rewriting.get(parent)?.slice(0, MOST_TRIED) ?? []) {
      if (!isOpen(open, place) || !meet(open.host, place.host)) continue;
      const request = joined(pathText(matchAt(open).path), goal.slice(parent === "/" ? 0 : parent.length));
      const host = isWithin(open.host, place.host) ? open.host : place.host;
      if (nearest(all, host, request)?.route === open.route) return { open, request, sent: goal };
    }
  return undefined;
}

/** Bounds the work if thousands of routes send the same prefix. */
const MOST_TRIED = 16;

/** What replaces the prefix of a match, without slashes at its end. */
function replacedPrefix({ policies: { urlRewrite } }: Route): string | undefined {
  if (urlRewrite === undefined || !("path" in urlRewrite) || urlRewrite.path === undefined) return undefined;
  return "prefix" in urlRewrite.path ? pathText({ type: "pathPrefix", value: urlRewrite.path.prefix }) : undefined;
}

function joined(prefix: string, rest: string): string {
  return `${prefix === "/" ? "" : prefix}${rest}` || "/";
}

/** Whether the open route demands nothing and leads where the guarded one leads. */
function isOpen({ route: open }: HttpPlace, { route }: HttpPlace): boolean {
  if (open === route || authenticationOf(open.policies) !== undefined) return false;
  const targets = new Set(targetsOf(open));
  return targetsOf(route).some((target) => targets.has(target));
}

/** The match that a request for the path gets if its conditions select no other; undefined also if an expression may take it. */
function nearest(all: ReadonlyMap<string, Unconditional>, host: string, path: string): HttpPlace | undefined {
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
function* parentsOf(path: string): Generator<string> {
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

/** Backends that requests can be sent to, as texts that are equal for the same place. */
function targetsOf({ backends, policies: { directResponse, requestRedirect } }: Route): string[] {
  if (directResponse !== undefined || requestRedirect !== undefined) return [];
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
