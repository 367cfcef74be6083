import type { Path } from "../../base/paths.ts";
import type { RouteBackend, TargetedPolicy } from "../../ir/ir.ts";
import { mergePolicies, NO_POLICY_SET } from "../../policies/merge.ts";
import type { PolicyInputs, PolicySet } from "../../policies/policy-set.ts";
import { translatePolicies } from "../../translation/policies.ts";
import { reportUnknown } from "../../translation/references.ts";
import { inlineUnlessAll } from "../../translation/route-policies.ts";
import { checkTunnel, isTunnelled, type TargetInput, translateTarget } from "../../translation/target.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { Context, ListenerPlace } from "./context.ts";

/** Policies that target a route or its listener, for the backends of the route. */
interface InheritedPolicies {
  /** Of the listener. */
  readonly listener: PolicySet;
  /** Of the route. */
  readonly route: PolicySet;
}

/**
 * A route's backend with its reference resolved; `key` is used unless it refers to a named backend. Of its policies, those at
 * the reference win over those at the named backend, these over those that target the route, the backend or service, and the
 * listener.
 */
export function translateBackend(
  input: TargetInput & { readonly policies?: PolicyInputs | undefined; readonly weight: number },
  key: string,
  inherited: InheritedPolicies,
  path: Path,
  context: Context,
): RouteBackend {
  const own = translatePolicies(input.policies, "backend", [...path, "policies"], context);
  if (input.backend === undefined) {
    const target = translateTarget(input, path, context);
    checkTunnel(target, own, path, context.report);
    const service = target.type === "service" ? context.targeted.forService(target.key, target.port) : NO_POLICY_SET;
    const policies = merge(target, inherited, service, own);
    return { key, weight: input.weight, target, policies, ...inlineUnlessAll(own, policies) };
  }
  const name = input.backend.replace(/^\//, "");
  const named = context.backends.get(name);
  if (named === undefined) {
    const known = [...context.backends.keys()].map((each) => `/${each}`);
    reportUnknown("backend", "backends", input.backend, known, [...path, "backend"], context);
    return { key, weight: input.weight, target: { type: "invalid", reference: input.backend }, policies: own };
  }
  const inline = mergePolicies(context.backendPolicies.get(name) ?? NO_POLICY_SET, own);
  checkTunnel(named.target, inline, path, context.report);
  const policies = merge(named.target, inherited, context.targeted.forBackend(name), inline);
  return { key: named.key, weight: input.weight, target: named.target, policies, ...inlineUnlessAll(own, policies) };
}

function merge(
  target: Target,
  { listener, route }: InheritedPolicies,
  targeted: PolicySet,
  inline: PolicySet,
): PolicySet {
  // A group chooses among routes, whose backends have policies of their own.
  if (target.type === "routeGroup") return inline;
  const { backendTunnel, ...others } = mergePolicies(listener, targeted, route);
  const tunnel = backendTunnel !== undefined && isTunnelled(target) ? { backendTunnel } : NO_POLICY_SET;
  return mergePolicies(others, tunnel, inline);
}

/** The inline policies of a listener in the form in which the dump lists them among the targeted ones (reference 4.4). */
export function inlineEntries(
  key: string,
  { gatewayName, gatewayNamespace, name }: ListenerPlace,
  policies: PolicySet,
): TargetedPolicy[] {
  const target = { gateway: { gatewayName, gatewayNamespace, listenerName: name } };
  return Object.entries(policies).map(([kind, policy], i) => ({
    key: `${key}/${i}`,
    name: null,
    target,
    policy: { traffic: { phase: "gateway", [kind]: policy } },
  }));
}
