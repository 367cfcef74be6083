import type { PolicyConfig, PolicySet, SetKey } from "./policy-set.ts";
import { KINDS } from "./registry.ts";
import type { CallPolicies } from "./schema/call.ts";

/** The empty set: one shared object, which counts with thousands of routes. */
export const NO_POLICY_SET: PolicySet = Object.freeze({});

/**
 * Combines the policies of several levels, the outermost first, key by key (reference 3): the inner level replaces the outer one
 * unless the kind has its own `merge`. Most sets are empty; then an existing set is returned instead of a copy.
 */
export function mergePolicies(...sets: readonly PolicySet[]): PolicySet {
  const [only = NO_POLICY_SET, ...others] = sets.filter((set) => Object.keys(set).length > 0);
  return others.reduce<PolicySet>(mergeTwo, only);
}

type Merging = { -readonly [Key in SetKey]?: PolicyConfig<Key> | undefined };

function mergeTwo(outer: PolicySet, inner: PolicySet): PolicySet {
  const merged: Merging = { ...outer };
  for (const kind of kindsOf(inner)) mergeKind(kind, merged, inner);
  return merged;
}

function mergeKind<Kind extends SetKey>(kind: Kind, merged: Merging, inner: PolicySet): void {
  const outer = merged[kind];
  const own = inner[kind];
  if (own === undefined) return;
  merged[kind] = outer === undefined ? own : KINDS[kind].merge(outer, own);
}

/** The keys that a set has: its kinds, and those of its shadow policies. */
export function kindsOf<Set extends { readonly [Key in SetKey]?: unknown }>(set: Set): readonly (SetKey & keyof Set)[] {
  return Object.keys(set) as (SetKey & keyof Set)[];
}

/**
 * Those of a backend's policies that calls can have. Alternatives are dropped: in the backend phase they are an error, reported
 * elsewhere.
 */
export function callPoliciesOf(set: PolicySet): CallPolicies {
  const { transformations, ...others } = set;
  return transformations === undefined || "conditional" in transformations ? others : { ...set, transformations };
}
