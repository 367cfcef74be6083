/**
 * Rules that never get a request because another one with the same hostnames and matches goes first: of an older route, or earlier
 * in the same one (Gateway API, "Conflicts"). Nothing in the API reports it, and it is a usual surprise.
 */
import type { Route, RouteMatch, TcpRoute } from "../../ir/ir.ts";
import { defineQuery } from "../graph.ts";
import { routesOfGateway } from "./route-keys.ts";
import { routeModel } from "./routes.ts";

/** What rules of one route match at one listener. */
interface Claims {
  readonly listener: string;
  readonly rules: readonly ClaimingRule[];
}

interface ClaimingRule {
  /** As in `Attachment`: where it stands among equals. */
  readonly order: string;
  /** One text for each pair of hostname and match; equal texts match the same requests with the same precedence. */
  readonly signatures: readonly string[];
}

/** Key of a listener → messages about the rules of a route (key `<kind>/<namespace>/<name>`) that are shadowed there. */
export const shadowedRules = defineQuery<ReadonlyMap<string, readonly string[]>>("shadowedRules", (read, key) => {
  const { parents } = read.query(routeModel, key);
  const shadowed = new Map<string, readonly string[]>();
  for (const { gateway, attachments } of parents)
    for (const { listener } of attachments) {
      const messages = read.query(shadowedAt, `${gateway} ${listener}`).get(key);
      if (messages !== undefined) shadowed.set(listener, messages);
    }
  return shadowed;
});

/** Of all routes at a listener; its key is `<gateway> <listener>`. */
const shadowedAt = defineQuery<ReadonlyMap<string, readonly string[]>>("shadowedAt", (read, key) => {
  const [gateway = "", listener] = key.split(" ");
  const rules = read.query(routesOfGateway, gateway).flatMap((route) => {
    const claims = read.query(claimsOf, route).find((each) => each.listener === listener);
    return (claims?.rules ?? []).map((rule) => ({ route, ...rule }));
  });
  rules.sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
  const first = new Map<string, { readonly route: string; readonly order: string }>();
  const shadowed = new Map<string, string[]>();
  for (const rule of rules) {
    const winners = rule.signatures.map((signature) => first.get(signature));
    for (const signature of rule.signatures) if (!first.has(signature)) first.set(signature, rule);
    if (winners.length === 0 || winners.includes(undefined)) continue;
    const names = winners.flatMap((winner) => (winner === undefined ? [] : nameOf(winner, rule.route)));
    const message = `rules[${ruleOf(rule)}] is never used: ${[...new Set(names)].join(" and ")} matches the same and goes first`;
    shadowed.set(rule.route, [...(shadowed.get(rule.route) ?? []), message]);
  }
  return shadowed;
});

function nameOf(winner: { readonly route: string; readonly order: string }, loser: string): string {
  const rule = `rules[${ruleOf(winner)}]`;
  const [kind, namespace, name] = winner.route.split("/");
  return winner.route === loser ? rule : `${rule} of ${kind} ${namespace}/${name}`;
}

function ruleOf({ order }: { readonly order: string }): number {
  return Number(order.slice(order.lastIndexOf(".") + 1));
}

/** A query of its own: a route that changes is looked at again, and the others at its listeners are not. */
const claimsOf = defineQuery<readonly Claims[]>("claimsOf", (read, key) =>
  read.query(routeModel, key).parents.flatMap(({ attachments }) =>
    attachments.map(({ listener, routes, tcpRoutes }) => ({
      listener,
      rules: [
        ...routes.map(({ order, route }) => ({ order, signatures: signaturesOf(route) })),
        ...tcpRoutes.map(({ order, route }) => ({ order, signatures: hostnamesOf(route) })),
      ],
    })),
  ),
);

function hostnamesOf({ hostnames }: Pick<TcpRoute, "hostnames">): readonly string[] {
  return hostnames.length === 0 ? [""] : hostnames;
}

function signaturesOf(route: Route): readonly string[] {
  const matches = route.matches.map(signatureOf);
  return hostnamesOf(route).flatMap((hostname) => matches.map((match) => `${hostname} ${match}`));
}

function signatureOf({ path, method, headers, query }: RouteMatch): string {
  const sorted = [headers, query].map((values) => values.map((each) => JSON.stringify(each)).sort());
  // Trailing slashes of a prefix mean nothing.
  const value = path.type === "pathPrefix" ? path.value.replace(/\/+$/, "") : path.value;
  return JSON.stringify([path.type, value, method, ...sorted]);
}
