import type { PolicyConfig, PolicySet, SetKey } from "./policy-set.ts";
import { KINDS } from "./registry.ts";
import type { CallPolicies } from "./schema/call.ts";

/** The empty set: one shared object, which counts with thousands of routes. */
export const NO_POLICY_SET: PolicySet = Object.freeze({});

/** Policies, and where each was written. */
export interface Level<Source> {
  readonly set: PolicySet;
  readonly sources: Sources<Source>;
  /** Where those were written that have no effect because of another level, the outermost first. */
  readonly replaced?: Sources<Source>;
}

/** One for each key; of a kind that levels add up, such as `authorization`, one for each level that has it, the outermost first. */
export type Sources<Source> = { readonly [Key in SetKey]?: readonly Source[] | undefined };

/** The empty level. */
export const NO_LEVEL: Level<never> = Object.freeze({ set: NO_POLICY_SET, sources: Object.freeze({}) });

/**
 * Combines the policies of several levels, the outermost first, key by key (reference 3): the inner level replaces the outer one
 * unless the kind has its own `merge`. Most levels are empty; then an existing one is returned instead of a copy.
 */
export function mergeLevels<Source>(...levels: readonly Level<Source>[]): Level<Source> {
  const [only = NO_LEVEL, ...others] = levels.filter(({ set }) => kindsOf(set).length > 0);
  return others.reduce<Level<Source>>(mergeTwo, only);
}

type Merged<Source> = { -readonly [Key in SetKey]?: readonly Source[] | undefined };

interface Merging<Source> {
  readonly set: { -readonly [Key in SetKey]?: PolicyConfig<Key> | undefined };
  readonly sources: Merged<Source>;
}

function mergeTwo<Source>(outer: Level<Source>, inner: Level<Source>): Level<Source> {
  const merged: Merging<Source> = { set: { ...outer.set }, sources: { ...outer.sources } };
  const replaced: Merged<Source> = { ...outer.replaced };
  for (const kind of kindsOf(inner.set)) {
    const lost = [...mergeKind(kind, merged, inner), ...(inner.replaced?.[kind] ?? [])];
    if (lost.length > 0) replaced[kind] = [...(replaced[kind] ?? []), ...lost];
  }
  return Object.keys(replaced).length === 0 ? merged : { ...merged, replaced };
}

/** Returns where the one of both was written that has no effect now. */
function mergeKind<Kind extends SetKey, Source>(
  kind: Kind,
  { set, sources }: Merging<Source>,
  inner: Level<Source>,
): readonly Source[] {
  const outer = set[kind];
  const own = inner.set[kind];
  if (own === undefined) return [];
  const result = outer === undefined ? own : KINDS[kind].merge(outer, own);
  const { [kind]: written } = inner.sources;
  if (result === outer) return written ?? [];
  set[kind] = result;
  const { [kind]: before = [] } = sources;
  const isReplaced = result === own;
  if (written !== undefined) sources[kind] = isReplaced ? written : [...before, ...written];
  return isReplaced ? before : [];
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
