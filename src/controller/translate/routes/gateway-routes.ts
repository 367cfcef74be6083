/**
 * What the routes of a Gateway add to it. Routes are divided into shards, so that a change of one among thousands runs again for
 * its shard only; the results of all others are as before.
 */
import { type LintedRoute, lintedRoute } from "../../../translation/linted-route.ts";
import { nameOfResource, type RouteResource } from "../../../xds/resources.ts";
import { defineQuery, type Pair, type Read } from "../../graph/graph.ts";
import { SHARD_NUMBERS, shardOf } from "../model/shards.ts";
import { routesOfGateway } from "./route-keys.ts";
import { routeModel } from "./routes.ts";

interface Contribution {
  /** With their names, also at listeners of other Gateways. */
  readonly resources: readonly (readonly [string, RouteResource])[];
  /** Keys of the listeners that accept a route, each once for each route (ListenerStatus.attachedRoutes). */
  readonly listeners: readonly string[];
  /** Keys of the services that are called. */
  readonly services: readonly string[];
  /** `<namespace>/<name>` of the TracegateBackends that are called. */
  readonly backends: readonly string[];
  readonly rules: readonly LintedRule[];
}

/** A rule at a listener, for lints about all rules there. */
export interface LintedRule extends LintedRoute {
  readonly listener: string;
}

/** What the routes add that name the Gateway or one of its ListenerSets; of each kind, one shard after the other. */
export function contributionsOf(read: Read, gateway: string): readonly Contribution[] {
  return SHARD_NUMBERS.map((shard) => read.query(contributionOfShard, [gateway, String(shard)]));
}

const contributionOfShard = defineQuery<Contribution, Pair>("contributionOfShard", (read, [gateway, shard]) => {
  const routes = read.query(shardsOfGateway, gateway)[Number(shard)] ?? [];
  const parts = routes.map((route) => read.query(contributionOfRoute, route));
  return {
    resources: parts.flatMap(({ resources }) => resources),
    listeners: parts.flatMap(({ listeners }) => listeners),
    services: [...new Set(parts.flatMap(({ services }) => services))],
    backends: [...new Set(parts.flatMap(({ backends }) => backends))],
    rules: parts.flatMap(({ rules }) => rules),
  };
});

const shardsOfGateway = defineQuery<readonly (readonly string[])[]>("shardsOfGateway", (read, gateway) => {
  const shards: string[][] = SHARD_NUMBERS.map(() => []);
  for (const route of read.query(routesOfGateway, gateway)) shards[shardOf(route)]?.push(route);
  return shards;
});

/** The rules of a route at all its listeners. */
const contributionOfRoute = defineQuery<Contribution>("contributionOfRoute", (read, key) => {
  const { parents, services } = read.query(routeModel, key);
  const attachments = parents.flatMap((parent) => parent.attachments);
  const accepting = parents.filter(({ conditions }) => conditions[0]?.status === "True");
  const resources = attachments.flatMap(({ listener, routes, tcpRoutes }) => [
    ...routes.map((route): RouteResource => ({ kind: "route", listener, route })),
    ...tcpRoutes.map((route): RouteResource => ({ kind: "tcpRoute", listener, route })),
  ]);
  // Some are the same: a route may name a listener by several parentRefs.
  const named = resources.map((resource) => [nameOfResource(resource), resource] as const);
  return {
    resources: named,
    listeners: [...new Set(accepting.flatMap((parent) => parent.attachments.map(({ listener }) => listener)))],
    services,
    // The key of any other backend begins with that of its rule.
    backends: resources.flatMap(({ route }) =>
      route.backends.flatMap(({ key }) => (key.startsWith(`/${route.key}/`) ? [] : key.slice(1))),
    ),
    rules: [...new Map(named).values()].map(({ listener, route }) => ({
      listener,
      // Its hostnames are those that the listener takes.
      ...lintedRoute(route, ""),
    })),
  };
});
