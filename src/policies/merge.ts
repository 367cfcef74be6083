import type { PolicyConfig, PolicyKind, PolicySet } from "./policy-set.ts";
import { KINDS } from "./registry.ts";
import type { CallPolicies } from "./schema/call.ts";

/** The empty set: one shared object, which counts with thousands of routes. */
export const NO_POLICY_SET: PolicySet = Object.freeze({});

/**
 * Combines the policies of several levels, the outermost first, kind by kind (reference 3): the inner level replaces the outer one
 * unless the kind has its own `merge`. Most sets are empty; then an existing set is returned instead of a copy.
 */
export function mergePolicies(...sets: readonly PolicySet[]): PolicySet {
  const [only = NO_POLICY_SET, ...others] = sets.filter((set) => Object.keys(set).length > 0);
  return others.reduce<PolicySet>(mergeTwo, only);
}

type Merging = { -readonly [Kind in PolicyKind]?: PolicyConfig<Kind> | undefined };

function mergeTwo(outer: PolicySet, inner: PolicySet): PolicySet {
  const merged: Merging = { ...outer };
  for (const kind of kindsOf(inner)) mergeKind(kind, merged, inner);
  return merged;
}

function mergeKind<Kind extends PolicyKind>(kind: Kind, merged: Merging, inner: PolicySet): void {
  const outer = merged[kind];
  const own = inner[kind];
  if (own === undefined) return;
  merged[kind] = outer === undefined ? own : KINDS[kind].merge(outer, own);
}

/** The kinds that a set has. */
export function kindsOf(set: { readonly [Kind in PolicyKind]?: unknown }): readonly PolicyKind[] {
  return Object.keys(set) as PolicyKind[];
}

/**
 * Those of a backend's policies that calls can have. Alternatives are dropped: in the backend phase they are an error, reported
 * elsewhere.
 */
export function callPoliciesOf(set: PolicySet): CallPolicies {
  const { transformations, ...others } = set;
  return transformations === undefined || "conditional" in transformations ? others : { ...set, transformations };
}
