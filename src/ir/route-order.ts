import type { Route, TcpRoute } from "./ir.ts";
import { compareMatches, rankedMatch } from "./precedence.ts";

type AnyRoute = Route | TcpRoute;

/**
 * The routes of one listener or group in the order in which they get requests: by hostname, exact ones before wildcards, the longer of these
 * before shorter ones, then by the precedence of matches. A route stands where the first of its hostnames and matches stands.
 */
export function inPrecedence<Each extends AnyRoute>(routes: readonly Each[]): Each[] {
  return routes
    .map((route) => ({ route, host: firstHost(route), match: firstMatch(route) }))
    .sort((a, b) => {
      const byHost = compareHosts(a.host, b.host);
      if (byHost !== 0) return byHost;
      // Of routes without matches the first that fits is used, so they stay in their order; an HTTP route without any gets no request.
      if (a.match === undefined || b.match === undefined)
        return Number(a.match === undefined) - Number(b.match === undefined);
      return compareMatches(a.match, b.match);
    })
    .map(({ route }) => route);
}

function firstHost({ hostnames }: AnyRoute): string {
  return hostnames.toSorted(compareHosts)[0] ?? "*";
}

function firstMatch(route: AnyRoute): ReturnType<typeof rankedMatch> | undefined {
  if (!("matches" in route)) return undefined;
  return route.matches.map((_, index) => rankedMatch(route, index)).sort(compareMatches)[0];
}

function compareHosts(a: string, b: string): number {
  const [first, second] = [reach(a), reach(b)];
  if (first !== second) return first - second;
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Smaller = looked at earlier. */
function reach(host: string): number {
  if (host === "" || host === "*") return Number.POSITIVE_INFINITY;
  return host.startsWith("*") ? 1 / host.length : 0;
}
