import type { HeaderModifier, PolicySet, RequestRedirect, UrlRewrite } from "../../ir/policies.ts";

/** A policy object as the schema gives it: absent kinds are missing or undefined. */
type PolicyInput = { readonly [Kind in keyof PolicySet]?: unknown };

/** Drops absent kinds, so that an empty set has no keys. */
export function toPolicySet(input: PolicyInput | undefined): PolicySet {
  if (input === undefined) return {};
  const set: Record<string, unknown> = {};
  for (const [kind, value] of Object.entries(input)) if (value !== undefined) set[kind] = withoutUndefined(value);
  return set as { requestHeaderModifier?: HeaderModifier; urlRewrite?: UrlRewrite; requestRedirect?: RequestRedirect };
}

function withoutUndefined(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

/** Later sets win, kind by kind (reference 3). */
export function mergePolicies(...sets: readonly PolicySet[]): PolicySet {
  return Object.assign({}, ...sets) as PolicySet;
}
