/**
 * What lints find about the routes of a Gateway together: the same as in a configuration file, in the words of a cluster. The Gateway
 * API has no condition for a rule that is never used or for a way past authentication, although both surprise users often. Rules are
 * compared again when one of them changes: of 10,000 rules with 20,000 matches that takes about 5 ms.
 */
import { objectKey } from "../../../base/object-key.ts";
import { formatPath } from "../../../base/paths.ts";
import { refOf } from "../../../kube/keys.ts";
import { fullText } from "../../../translation/problems/diagnostics.ts";
import { lintTexts } from "../../../translation/problems/lint-table.ts";
import { lintRoutes, type RouteFinding } from "../../../translation/route-lints.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { gatewayModel } from "../listeners/gateways.ts";
import type { LintFinding } from "../model/conditions.ts";
import type { ListenerModel } from "../model/model.ts";
import { listenerTargets, mergeAttached } from "../policy/policies.ts";
import { contributionsOf, type LintedRule } from "./gateway-routes.ts";

/** Something about a rule of a route at a listener. */
interface RuleFinding extends LintFinding {
  /** `<kind>/<namespace>/<name>` of the route. */
  readonly object: string;
  /** Its key. */
  readonly listener: string;
}

/** By the `object` of each, for all listeners of a Gateway. */
export const routeFindings = defineQuery<Readonly<Partial<Record<string, readonly RuleFinding[]>>>>(
  "routeFindings",
  (read, gateway) => {
    const all = contributionsOf(read, gateway).flatMap(({ rules }) => rules);
    const byListener = Map.groupBy(all, ({ listener }) => listener);
    const listeners = read.query(gatewayModel, gateway)?.listeners ?? [];
    const found = listeners.flatMap((listener) => findingsAt(read, listener, byListener.get(listener.key) ?? []));
    return Object.groupBy(found, ({ object }) => object);
  },
);

function findingsAt(read: Read, listener: ListenerModel, rules: LintedRule[]): RuleFinding[] {
  // Of rules for connections the first one counts.
  if (!listener.protocol.startsWith("HTTP")) rules.sort((a, b) => (a.order < b.order ? -1 : 1));
  const policies = mergeAttached(read, "gateway", listenerTargets(listener));
  // Made only if there are findings, which is rare.
  let ruleOf: ReadonlyMap<unknown, LintedRule> | undefined;
  const ruleAt = (route: unknown): LintedRule | undefined => {
    ruleOf ??= new Map(rules.map((rule) => [rule.route, rule]));
    return ruleOf.get(route);
  };
  const findings = lintRoutes(policies, rules, ({ route, match }, loser) =>
    nameOf(ruleAt(route), ruleAt(loser), match),
  );
  return findings.flatMap((finding) => {
    const rule = ruleAt(finding.route);
    // The matches that are left of an invalid rule are not numbered as those of the object.
    if (rule === undefined || (finding.match !== undefined && isInvalid(rule))) return [];
    return { object: rule.object, listener: listener.key, ...textOf(finding, rule) };
  });
}

function isInvalid({ route }: LintedRule): boolean {
  return route.backends.some(({ target }) => target.type === "invalid");
}

/** `rules[1] of HTTPRoute shop/web`, as the loser's author finds it; of the same route or rule only what differs. */
function nameOf(winner: LintedRule | undefined, loser: LintedRule | undefined, match: number | undefined): string {
  if (winner === undefined) return "another route";
  if (winner === loser) return `matches[${match}]`;
  const { kind, ...name } = refOf(winner.object);
  const rule = `rules[${winner.number}]`;
  return winner.object === loser?.object ? rule : `${rule} of ${kind} ${objectKey(name)}`;
}

const FIELDS = { hostnames: "hostnames", headers: "headers", query: "queryParams" } as const;

function textOf({ code, found, match, field }: RouteFinding, { number }: LintedRule): LintFinding {
  const path = [
    ...["spec", "rules", number],
    ...(match === undefined ? [] : ["matches", match]),
    ...(field === undefined ? [] : [FIELDS[field]]),
  ];
  return { code, text: `${formatPath(path)}: ${fullText(lintTexts(code, ...(found as never)))}` };
}
