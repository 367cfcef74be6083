/**
 * Findings about the routes of one listener or route group together: those that others keep from requests, and those that lead past the
 * authentication of others. Routes are compared by host and path, never each with each other.
 */
import { compareMatches, rankedMatch } from "../ir/precedence.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import { loginsIn } from "../policies/satisfy/logins.ts";
import { authenticationOf, type LintedRoute, type NameOf, type Place } from "./linted-route.ts";
import { bypasses } from "./route-bypasses.ts";
import type { RouteFinding } from "./route-findings.ts";
import { logins } from "./route-logins.ts";

/**
 * Findings about the routes of one listener or route group; those of connections or UDP sessions in their order. `policies`: of the
 * listener; undefined for a route group, whose requests other routes select.
 */
export function lintRoutes(
  policies: PolicySet | undefined,
  routes: readonly LintedRoute[],
  nameOf: NameOf,
): RouteFinding[] {
  const { winners, lost } = contest(routes);
  const findings = routes.flatMap((route) => route.findings);
  if (lost.size > 0) findings.push(...routes.flatMap((route) => shadowed(route, lost, nameOf)));
  // What protects the whole listener protects every route.
  if (policies === undefined || authenticationOf(policies) === undefined)
    findings.push(...bypasses(routes, winners, nameOf));
  if (policies !== undefined && loginsIn(policies).length === 0) findings.push(...logins(routes, winners, nameOf));
  return findings;
}

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
