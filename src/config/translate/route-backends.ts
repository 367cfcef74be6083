import type { Path } from "../../base/paths.ts";
import type { RouteBackend, TargetedPolicy } from "../../ir/ir.ts";
import { levelOf, type PolicyLevel, recorded } from "../../ir/origins.ts";
import { writtenKind } from "../../policies/contract/shadow.ts";
import { mergeLevels, NO_LEVEL } from "../../policies/merge.ts";
import type { PolicyInputs, PolicySet } from "../../policies/policy-set.ts";
import { translatePolicies } from "../../translation/policies.ts";
import { reportUnknown } from "../../translation/references.ts";
import { checkTunnel, isTunnelled } from "../../translation/target.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { Context, ListenerPlace } from "./context.ts";
import { endpointsOf, type PoolOrTarget, translateBackendTarget } from "./pools.ts";

/** Policies that target a route or its listener, for the backends of the route. */
interface InheritedPolicies {
  /** Of the listener. */
  readonly listener: PolicyLevel;
  /** Of the route. */
  readonly route: PolicyLevel;
}

/**
 * A route's backend with its reference resolved; `key` is used unless it refers to a named backend. Of its policies, those at
 * the reference win over those at the named backend, these over those that target the route, the backend or service, and the
 * listener.
 */
export function translateBackend(
  input: PoolOrTarget & { readonly policies?: PolicyInputs | undefined; readonly weight: number },
  key: string,
  inherited: InheritedPolicies,
  path: Path,
  context: Context,
): RouteBackend {
  const own = levelOf(translatePolicies(input.policies, "backend", [...path, "policies"], context));
  if (input.name !== undefined && input.endpoints === undefined)
    context.report([...path, "name"], {
      message: "is for a pool; give it endpoints, or write the backend in `backends`, where it can have a name",
    });
  if (input.backend === undefined) {
    const target = withName(translateBackendTarget(input, key, path, context), input.name);
    checkTunnel(target, own.set, path, context.report, () => endpointsOf(target, context));
    const service = target.type === "service" ? context.targeted.forService(target.key, target.port) : NO_LEVEL;
    return { key, weight: input.weight, target, ...merge(target, inherited, service, NO_LEVEL, own) };
  }
  if (input.dns !== undefined)
    context.report([...path, "dns"], { message: `is for a host; write it at ${input.backend} in \`backends\`` });
  const name = input.backend.replace(/^\//, "");
  const named = context.backends.get(name);
  if (named === undefined) {
    const known = [...context.backends.keys()].map((each) => `/${each}`);
    reportUnknown("backend", "backends", input.backend, known, [...path, "backend"], context);
    return { key, weight: input.weight, target: { type: "invalid", reference: input.backend }, policies: own.set };
  }
  const { target } = named;
  const ofBackend = context.backendPolicies.get(name) ?? NO_LEVEL;
  checkTunnel(target, mergeLevels(ofBackend, own).set, path, context.report, () => endpointsOf(target, context));
  const targeted = context.targeted.forBackend(name);
  return { key: named.key, weight: input.weight, target, ...merge(target, inherited, targeted, ofBackend, own) };
}

/** With the name that a pool has at its route. */
function withName(target: Target, name: string | undefined): Target {
  return target.type === "pool" && name !== undefined ? { ...target, name } : target;
}

/** The policies of a backend at a route; `own` are those written there. */
function merge(
  target: Target,
  { listener, route }: InheritedPolicies,
  targeted: PolicyLevel,
  ofBackend: PolicyLevel,
  own: PolicyLevel,
): Pick<RouteBackend, "policies" | "sources" | "inline"> {
  // A group chooses among routes, whose backends have policies of their own.
  const around = target.type === "routeGroup" ? NO_LEVEL : mergeLevels(listener, targeted, route);
  const { backendTunnel, ...others } = around.set;
  const usable = backendTunnel === undefined || isTunnelled(target) ? around : { ...around, set: others };
  const merged = mergeLevels(usable, ofBackend, own);
  return recorded(merged, own.set);
}

/** The inline policies of a listener in the form in which the dump lists them among the targeted ones (reference 4.4). */
export function inlineEntries(
  key: string,
  { gatewayName, gatewayNamespace, name }: ListenerPlace,
  policies: PolicySet,
  at: Path,
): TargetedPolicy[] {
  const target = { gateway: { gatewayName, gatewayNamespace, listenerName: name } };
  return Object.entries(policies).map(([kind, policy], i) => ({
    key: `${key}/${i}`,
    name: null,
    target,
    origin: { path: [...at, writtenKind(kind)] },
    policy: { traffic: { phase: "gateway", [kind]: policy } },
  }));
}
