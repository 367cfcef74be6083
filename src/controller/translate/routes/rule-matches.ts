/**
 * The matches of rules in comparable form, to find rules that match the same requests or connections. A rule is unreachable only
 * if rules that take precedence match the same host, path and conditions: less specific ones come after it
 * (docs/lifecycle.md#4-match-route).
 */
import type { Route, RouteMatch, ValueMatch } from "../../../ir/ir.ts";
import { withoutTrailingSlashes } from "../../../proxy/match/entry.ts";
import { nameOfResource, type RouteResource } from "../../../xds/resources.ts";

/** One host and match of a rule at a listener. */
export interface RuleMatch {
  readonly listener: string;
  /** Equal for all rules that match the same at that listener; begins with its key. */
  readonly slot: string;
  /** Of two matches in a slot the smaller one wins. */
  readonly rank: string;
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
      rank: rankOf(resource.route, match, index),
      route,
      rule,
      number,
    })),
  );
}

/** The same text for matches that the same requests fit. */
function conditionsOf({ path, method, headers, query }: RouteMatch): string {
  const value = path.type === "pathPrefix" ? withoutTrailingSlashes(path.value) : path.value;
  return JSON.stringify([path.type, value, method, sorted(headers), sorted(query)]);
}

function sorted(matches: readonly ValueMatch[]): readonly string[] {
  return matches.map(({ name, type, value }) => JSON.stringify([name, type, value])).sort();
}

/** As src/proxy/match/precedence.ts: a prefix with a trailing slash is longer; then age, name, key and index decide. */
function rankOf({ createdAt = 0, namespace, name, key }: Route, { path }: RouteMatch, index: number): string {
  const slash = path.value.endsWith("/") ? 0 : 1;
  const age = String(createdAt).padStart(12, "0");
  return `${slash} ${age} ${namespace}/${name} ${key} ${String(index).padStart(4, "0")}`;
}
