/** A route as lints compare it with others: where it takes requests or connections. */
import type { PathMatch, Route, RouteMatch, TcpRoute } from "../ir/ir.ts";
import { conditionsOf, withoutTrailingSlashes } from "../ir/precedence.ts";
import type { PolicyKind, PolicySet } from "../policies/policy-set.ts";
import { type AnyRoute, findingsIn, type RouteFinding, type RoutePlace } from "./route-findings.ts";

/** A host of a route. */
interface AtHost {
  /** Where requests arrive: the narrower of the route's and the listener's hostname; `` = all hosts. */
  readonly host: string;
  /** As the route has it. Of equal matches at a host, that of the longer name goes first. */
  readonly written: string;
}

/** One match of a route at one host; of a route of connections or sessions all of it. */
export type Place = HttpPlace | ConnectionPlace;
interface Compared extends AtHost {
  /** Equal for places that take the same requests or connections. */
  readonly slot: string;
  /** It takes every path, by an expression that goes before most of them because it is longer. */
  readonly isWide: boolean;
}
export interface HttpPlace extends Compared {
  readonly route: Route;
  readonly match: number;
}
interface ConnectionPlace extends Compared {
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

/** How a finding calls the match that wins over another route, or that leads past its authentication. */
export type NameOf = (winner: RoutePlace, loser: AnyRoute) => string;

/** Regular expressions that fit every path. */
const EVERY_PATH = /^\^?(?:\/?\.[*+]|\/\?\.\*)\$?$/;

/** `hostname`: that of the listener. */
export function lintedRoute(route: AnyRoute, hostname: string): LintedRoute {
  const hosts = hostsOf(route, hostname === "*" ? "" : hostname);
  if (hosts.length === 0)
    return {
      route,
      places: [],
      findings: [{ route, code: "unreachable-hostname", found: [hostname], field: "hostnames" }],
    };
  if (!("matches" in route))
    return {
      route,
      places: hosts.map((at) => ({ route, match: undefined, ...at, slot: at.host, isWide: false })),
      findings: [],
    };
  const places = hosts.flatMap((at) =>
    route.matches.map((each, match): HttpPlace => {
      const isWide = each.path.type === "regex" && EVERY_PATH.test(each.path.value) && !isConditional(each);
      return { route, match, ...at, slot: `${at.host} ${conditionsOf(each)}`, isWide };
    }),
  );
  return { route, places, findings: findingsIn(route), guard: authenticationOf(route.policies) };
}

function hostsOf({ hostnames }: AnyRoute, listener: string): AtHost[] {
  const written = hostnames.length === 0 ? [""] : hostnames.map((name) => (name === "*" ? "" : name));
  return written.flatMap((name) => {
    if (!meet(name, listener)) return [];
    return { host: isWithin(name, listener) ? name : listener, written: name };
  });
}

export function matchAt({ route, match }: HttpPlace): RouteMatch {
  return route.matches[match] as RouteMatch;
}

export function isConditional({ method, headers, query }: RouteMatch): boolean {
  return method !== undefined || headers.length + query.length > 0;
}

export function pathText({ type, value }: PathMatch): string {
  return type === "pathPrefix" ? withoutTrailingSlashes(value) || "/" : value;
}

const AUTHENTICATION = [
  "jwtAuth",
  "oidc",
  "basicAuth",
  "apiKey",
  "satisfy",
  "extAuthz",
  "authorization",
] as const satisfies readonly PolicyKind[];

export function authenticationOf(policies: PolicySet): PolicyKind | undefined {
  return AUTHENTICATION.find((kind) => policies[kind] !== undefined);
}

/** Whether a host can fit both names; a name is a host, `*.` with a host, or nothing for all hosts. */
export function meet(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one);
}

/** Whether every host that fits `narrow` fits `wide`. */
export function isWithin(narrow: string, wide: string): boolean {
  if (wide === "" || wide === "*" || narrow === wide) return true;
  return wide.startsWith("*") && narrow !== "" && narrow !== "*" && narrow.endsWith(wide.slice(1));
}
