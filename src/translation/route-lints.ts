/**
 * Findings about the routes of one listener or route group together: those that others keep from requests, and those that lead past the
 * authentication of others. Routes are compared by host and path, never each with each other.
 */
import type { Listener, PathMatch, Route, RouteMatch } from "../ir/ir.ts";
import {
  compareMatches,
  conditionsOf,
  type RankedMatch,
  rankedMatch,
  withoutTrailingSlashes,
} from "../ir/precedence.ts";
import type { PolicyKind } from "../policies/policy-set.ts";
import type { Target } from "../upstream/settings/target.ts";
import type { Found } from "./problems/lint-table.ts";

/** A route, or one of its matches. */
export interface RoutePlace {
  readonly route: Route;
  /** Index into its matches; undefined = all of it. */
  readonly match?: number;
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

/** One match of a route at one host. */
interface Place extends Required<RoutePlace> {
  /** Where requests arrive: the narrower of the route's and the listener's hostname; `` = all hosts. */
  readonly host: string;
  /** As the route has it. Of equal matches at a host, that of the longer name goes first. */
  readonly written: string;
  readonly rank: RankedMatch;
}

/** Regular expressions that fit every path. */
const EVERY_PATH = /^\^?(?:\/?\.[*+]|\/\?\.\*)\$?$/;

export function lintRoutes({
  hostname,
  routes,
  policies,
}: Pick<Listener, "hostname" | "routes" | "policies">): RouteFinding[] {
  const findings: RouteFinding[] = [];
  const listenerHost = hostname === "*" ? "" : hostname;
  const places = routes.flatMap((route): Place[] => {
    const hosts = hostsOf(route, listenerHost);
    if (hosts.length === 0)
      findings.push({ route, code: "unreachable-hostname", found: [hostname], field: "hostnames", related: [] });
    return hosts.flatMap((host) =>
      route.matches.map((_, match) => ({ route, match, ...host, rank: rankedMatch(route, match) })),
    );
  });
  findings.push(...routes.flatMap(impossibleMatches), ...shadowed(places));
  // What protects the whole listener protects every route.
  if (!AUTHENTICATION.some((kind) => policies[kind] !== undefined)) findings.push(...bypasses(places));
  return findings;
}

function hostsOf({ hostnames }: Route, listener: string): Pick<Place, "host" | "written">[] {
  const written = hostnames.length === 0 ? [""] : hostnames.map((name) => (name === "*" ? "" : name));
  return written.flatMap((name) => {
    if (!meet(name, listener)) return [];
    return { host: isWithin(name, listener) ? name : listener, written: name };
  });
}

// ── precedence ──

function shadowed(places: readonly Place[]): RouteFinding[] {
  const winners = new Map<string, Place>();
  const lost = new Map<Place, Place>();
  const slot = ({ host, route, match }: Place): string => `${host} ${conditionsOf(route.matches[match] as RouteMatch)}`;
  for (const place of places) {
    const key = slot(place);
    const other = winners.get(key);
    if (other === undefined || goesBefore(place, other)) winners.set(key, place);
  }
  const wide = new Map<string, Place[]>();
  for (const place of winners.values())
    if (takesEverything(place)) wide.set(place.host, [...(wide.get(place.host) ?? []), place]);
  for (const place of places) {
    const winner = winners.get(slot(place)) as Place;
    const wider = winner === place ? wide.get(place.host)?.find((each) => outranks(each, place)) : winner;
    if (wider !== undefined) lost.set(place, wider);
  }
  const findings: RouteFinding[] = [];
  for (const [route, own] of Map.groupBy(places, (place) => place.route)) {
    const losers = own.filter((place) => lost.has(place));
    if (losers.length === 0) continue;
    if (losers.length === own.length && losers.some((place) => lost.get(place)?.route !== route)) {
      const by = new Set(losers.flatMap((place) => lost.get(place) ?? []).filter((winner) => winner.route !== route));
      const winningRoutes = [...new Set([...by].map((winner) => winner.route))];
      const related = winningRoutes.map((winner) => ({ route: winner, message: "wins instead" }));
      findings.push({ route, code: "shadowed-route", found: [winningRoutes.map(({ name }) => name).sort()], related });
      continue;
    }
    for (const [match, each] of Map.groupBy(own, (place) => place.match)) {
      const winner = each.every((place) => lost.has(place)) ? lost.get(each[0] as Place) : undefined;
      if (winner === undefined) continue;
      const name = winner.route === route ? `matches[${winner.match}]` : winner.route.name;
      const related = [{ route: winner.route, match: winner.match, message: "wins instead" }];
      findings.push({ route, match, code: "unreachable-match", found: [name], related });
    }
  }
  return findings;
}

/** Of two matches at a host: the hostname of the route decides first. */
function goesBefore(a: Place, b: Place): boolean {
  return a.written === b.written ? compareMatches(a.rank, b.rank) < 0 : specificity(a) > specificity(b);
}

/** Higher = decides first: a host, then the longer of two wildcards. */
function specificity({ written }: Place): number {
  return written.startsWith("*") ? written.length : written === "" ? 0 : Number.POSITIVE_INFINITY;
}

/** A match without conditions, by an expression that fits every path: longer than most paths, so it goes before them. */
function takesEverything({ route, match }: Place): boolean {
  const { path, method, headers, query } = route.matches[match] as RouteMatch;
  return (
    path.type === "regex" && EVERY_PATH.test(path.value) && method === undefined && headers.length + query.length === 0
  );
}

function outranks(wide: Place, place: Place): boolean {
  if (wide.written !== place.written) return false;
  return compareMatches(wide.rank, place.rank) < 0;
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

/**
 * Matches that demand credentials only under conditions, or of an exact path, where the nearest broader route has no such policy and
 * leads to the same backend: `POST /admin` where only `GET /admin` is protected, or `/admin/` beside `/admin`.
 */
function bypasses(places: readonly Place[]): RouteFinding[] {
  const broad = new Map<string, Place>();
  for (const place of places) {
    const { path, method, headers, query } = place.route.matches[place.match] as RouteMatch;
    if (path.type !== "pathPrefix" || method !== undefined || headers.length + query.length > 0) continue;
    const key = `${place.host} ${pathText(path)}`;
    const other = broad.get(key);
    if (other === undefined || goesBefore(place, other)) broad.set(key, place);
  }
  const found = new Map<string, RouteFinding>();
  for (const { host, route, match } of places) {
    const kind = AUTHENTICATION.find((each) => route.policies[each] !== undefined);
    if (kind === undefined) continue;
    const { path, method, headers, query } = route.matches[match] as RouteMatch;
    const isConditional = method !== undefined || headers.length + query.length > 0;
    if (path.type === "regex" || (path.type === "pathPrefix" && !isConditional)) continue;
    const open = nearest(host, pathText(path), broad);
    if (
      open === undefined ||
      open.route === route ||
      AUTHENTICATION.some((each) => open.route.policies[each] !== undefined)
    )
      continue;
    const targets = new Set(targetsOf(open.route));
    if (!targetsOf(route).some((target) => targets.has(target))) continue;
    const related = [{ route: open.route, match: open.match, message: `has no ${kind}` }];
    found.set(`${route.key} ${match}`, {
      route,
      match,
      code: "bypassed-authentication",
      found: [kind, open.route.name],
      related,
    });
  }
  return [...found.values()];
}

/** The match that a request for the path gets if its conditions select no other. */
function nearest(host: string, path: string, broad: ReadonlyMap<string, Place>): Place | undefined {
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
