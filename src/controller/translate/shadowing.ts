/**
 * Rules of routes that no request can reach, because others that go first ask for the same. Nothing in the Gateway API reports
 * them, and they are a usual surprise.
 */
import { defineQuery } from "../graph.ts";
import { contributionsOf } from "./gateway-routes.ts";
import { gatewayModel } from "./gateways.ts";
import type { Claim } from "./route-claims.ts";

/** Messages about the shadowed rules of a route, by the keys of the listeners where they are. */
export type ShadowedRules = Readonly<Record<string, readonly string[]>>;

/** By `<kind>/<namespace>/<name>` of routes, for all listeners of a Gateway. */
export const shadowedRules = defineQuery<Readonly<Record<string, ShadowedRules>>>("shadowedRules", (read, gateway) => {
  const listeners = new Set(read.query(gatewayModel, gateway)?.listeners.map(({ key }) => key));
  const winners = new Map<string, Claim>();
  const losers: Claim[] = [];
  for (const { claims } of contributionsOf(read, gateway))
    for (const claim of claims) {
      if (!listeners.has(claim.listener)) continue;
      const other = winners.get(claim.slot);
      const [winner, loser] = other !== undefined && other.rank < claim.rank ? [other, claim] : [claim, other];
      winners.set(claim.slot, winner);
      if (loser !== undefined) losers.push(loser);
    }
  if (losers.length === 0) return {};
  const reached = new Set([...winners.values()].map(({ rule }) => rule));
  const found: Record<string, Record<string, string[]>> = {};
  // In the order of their names, so that messages stay as they are when something else changes.
  losers.sort((a, b) => (a.rule < b.rule ? -1 : 1));
  for (const [rule, claims] of Map.groupBy(losers, (claim) => claim.rule)) {
    const [claim] = claims;
    if (claim === undefined || reached.has(rule)) continue;
    const names = [...new Set(claims.flatMap((each) => nameOf(winners.get(each.slot), each)))].sort();
    const [match, go] = names.length === 1 ? ["matches", "goes"] : ["match", "go"];
    const message = `rules[${claim.number}] is never used: ${names.join(" and ")} ${match} the same and ${go} first`;
    const ofRoute = found[claim.route] ?? {};
    ofRoute[claim.listener] = [...(ofRoute[claim.listener] ?? []), message];
    found[claim.route] = ofRoute;
  }
  return found;
});

function nameOf(winner: Claim | undefined, loser: Claim): readonly string[] {
  if (winner === undefined) return [];
  const [kind = "", namespace = "", name = ""] = winner.route.split("/");
  const rule = `rules[${winner.number}]`;
  return [winner.route === loser.route ? rule : `${rule} of ${kind} ${namespace}/${name}`];
}
