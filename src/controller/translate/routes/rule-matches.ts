/**
 * The matches of rules in comparable form, to find rules that match the same requests or connections. A rule is unreachable only
 * if rules that take precedence match the same host, path and conditions: less specific ones come after it
 * (docs/lifecycle.md#4-match-route).
 */
import { compareMatches, conditionsOf, type RankedMatch, rankedMatch } from "../../../ir/precedence.ts";
import { nameOfResource, type RouteResource } from "../../../xds/resources.ts";

/** One host and match of a rule at a listener. */
export interface RuleMatch {
  readonly listener: string;
  /** Equal for all rules that match the same at that listener; begins with its key. */
  readonly slot: string;
  /** Of a rule for connections its place in the order of resources. */
  readonly rank: RankedMatch | string;
  /** `<kind>/<namespace>/<name>` */
  readonly route: string;
  /** Name of the resource. */
  readonly rule: string;
  /** Of the rule in its route. */
  readonly number: number;
}

/** `route`: `<kind>/<namespace>/<name>` of the route that the resource belongs to. */
export function matchesOf(route: string, resource: RouteResource): readonly RuleMatch[] {
  const { listener, order } = resource;
  const rule = nameOfResource(resource);
  const number = Number(order.slice(order.lastIndexOf(" ") + 1));
  const hosts = resource.route.hostnames.length === 0 ? [""] : resource.route.hostnames;
  if (resource.kind === "tcpRoute")
    return hosts.map((host) => ({ listener, slot: `${listener} ${host}`, rank: order, route, rule, number }));
  return hosts.flatMap((host) =>
    resource.route.matches.map((match, index) => ({
      listener,
      slot: `${listener} ${host} ${conditionsOf(match)}`,
      rank: rankedMatch(resource.route, index),
      route,
      rule,
      number,
    })),
  );
}

/** Of two matches in a slot, whether `a` wins. */
export function takesPrecedence({ rank: a }: RuleMatch, { rank: b }: RuleMatch): boolean {
  if (typeof a === "string" || typeof b === "string") return String(a) < String(b);
  return compareMatches(a, b) < 0;
}
