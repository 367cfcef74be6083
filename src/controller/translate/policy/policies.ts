/** What TracegatePolicies attach to Gateways, routes and backends, for the queries that translate those. */
import { nameOfKey } from "../../../base/object-key.ts";
import { NO_PHASES, type PolicyLevel } from "../../../ir/origins.ts";
import { refKey, refOf } from "../../../kube/keys.ts";
import { mergeLevels, NO_LEVEL } from "../../../policies/merge.ts";
import type { PolicySet } from "../../../policies/policy-set.ts";
import type { Phase } from "../../../trace/events.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import type { AttachedPolicies, ListenerModel } from "../model/model.ts";
import { policyModel } from "./model.ts";
import { inputsAt, isUsable, withoutLost } from "./parts.ts";
import type { TargetRef } from "./targets.ts";

const NOTHING: AttachedPolicies = { ...NO_PHASES, override: NO_PHASES };

/**
 * What TracegatePolicies attach to a `refKey`: to that object or section only, not to what is around it. The section of a
 * Service is a port number. Merge levels by `mergeAttached`.
 */
export const attachedPolicies = defineQuery<AttachedPolicies>("attachedPolicies", (read, target) => {
  const attached = inputsAt(read, target);
  if (attached.inputs.length === 0) return NOTHING;
  const { kind: targetKind } = refOf<TargetRef["kind"]>(target);
  const levels = { default: { ...NO_PHASES }, override: { ...NO_PHASES } };
  for (const { key, override, parts } of attached.parts) {
    const model = read.query(policyModel, key);
    if (model === undefined || parts.length === 0) continue;
    const into = override ? levels.override : levels.default;
    for (const phase of ["gateway", "route", "backend"] as const) {
      if (!parts.some((part) => part.phase === phase)) continue;
      const { set, sources } = model.levels[phase];
      const kept = Object.entries(withoutLost(set, attached, key, phase)).filter(([kind]) =>
        isUsable(kind, targetKind),
      );
      into[phase] = mergeLevels(into[phase], { set: Object.fromEntries(kept) as PolicySet, sources });
    }
  }
  return { ...levels.default, override: levels.override };
});

/**
 * The policies of a phase that result from several targets, the widest first: of each kind the narrowest applies, unless a wider one
 * has the inheritance `Override`. Policies among the targets are a level that other objects decide. `own`: what is written at the object
 * itself, as filters of a route, which is narrower than all.
 */
export function mergeAttached(
  read: Read,
  phase: Phase,
  targets: readonly (string | PolicyLevel)[],
  own: PolicyLevel = NO_LEVEL,
): PolicyLevel {
  const levels = targets.map((target) =>
    typeof target === "string" ? read.query(attachedPolicies, target) : { ...NOTHING, [phase]: target },
  );
  const overrides = levels.map(({ override }) => override[phase]).reverse();
  return mergeLevels(...levels.map((level) => level[phase]), own, ...overrides);
}

/** The targets by which policies mean a listener, the widest first. */
export function listenerTargets({
  gateway,
  listenerSet,
  ingress,
  name,
}: Pick<ListenerModel, "gateway" | "listenerSet" | "ingress" | "name">): string[] {
  const whole = { kind: "Gateway", ...nameOfKey(gateway) };
  const set = listenerSet === undefined ? undefined : { kind: "ListenerSet", ...nameOfKey(listenerSet) };
  const around = set === undefined ? [whole] : [whole, set];
  // The listener of an Ingress is named after a host, which is no section of the Gateway.
  const sections = ingress === undefined ? [{ ...(set ?? whole), section: name }] : [];
  return [...around, ...sections].map(refKey);
}
