/**
 * Rules of routes that no request can reach, because other rules with the same matches take precedence. The Gateway API has no
 * condition for them, although they surprise users often.
 */
import { objectKey } from "../../../base/object-key.ts";
import { refOf } from "../../../kube/keys.ts";
import { defineQuery } from "../../graph/graph.ts";
import { gatewayModel } from "../listeners/gateways.ts";
import { contributionsOf } from "./gateway-routes.ts";
import { type RuleMatch, takesPrecedence } from "./rule-matches.ts";

/** Messages about the shadowed rules of a route, by the keys of the listeners where they are. */
type ShadowedRules = Readonly<Record<string, readonly string[]>>;

/** By `<kind>/<namespace>/<name>` of routes, for all listeners of a Gateway. */
export const shadowedRules = defineQuery<Readonly<Record<string, ShadowedRules>>>("shadowedRules", (read, gateway) => {
  const listeners = new Set(read.query(gatewayModel, gateway)?.listeners.map(({ key }) => key));
  const winners = new Map<string, RuleMatch>();
  const losers: RuleMatch[] = [];
  for (const { matches } of contributionsOf(read, gateway))
    for (const match of matches) {
      if (!listeners.has(match.listener)) continue;
      const other = winners.get(match.slot);
      const [winner, loser] = other !== undefined && takesPrecedence(other, match) ? [other, match] : [match, other];
      winners.set(match.slot, winner);
      if (loser !== undefined) losers.push(loser);
    }
  if (losers.length === 0) return {};
  const reached = new Set([...winners.values()].map(({ rule }) => rule));
  const found: Record<string, Record<string, string[]>> = {};
  // In the order of their names, so that messages stay as they are when something else changes.
  losers.sort((a, b) => (a.rule < b.rule ? -1 : 1));
  for (const [rule, matches] of Map.groupBy(losers, (match) => match.rule)) {
    const [lost] = matches;
    if (lost === undefined || reached.has(rule)) continue;
    const names = [...new Set(matches.flatMap((each) => nameOf(winners.get(each.slot), each)))].sort();
    const [match, take] = names.length === 1 ? ["matches", "takes"] : ["match", "take"];
    const message = `rules[${lost.number}] is never used: ${names.join(" and ")} ${match} the same requests and ${take} precedence`;
    const ofRoute = found[lost.route] ?? {};
    ofRoute[lost.listener] = [...(ofRoute[lost.listener] ?? []), message];
    found[lost.route] = ofRoute;
  }
  return found;
});

function nameOf(winner: RuleMatch | undefined, loser: RuleMatch): readonly string[] {
  if (winner === undefined) return [];
  const { kind, ...name } = refOf(winner.route);
  const rule = `rules[${winner.number}]`;
  return [winner.route === loser.route ? rule : `${rule} of ${kind} ${objectKey(name)}`];
}
