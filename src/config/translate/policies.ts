import type { HeaderModifier, PolicySet, RequestRedirect, UrlRewrite } from "../../ir/policies.ts";
import { compilePolicies } from "../../policies/compile.ts";
import type { Phase } from "../../trace/events.ts";
import type { Context, Path } from "./context.ts";

/** A policy object as the schema gives it: absent kinds are missing or undefined. */
type PolicyInput = { readonly [Kind in keyof PolicySet]?: unknown };

/** The set without policies; always this object, which costs nothing where routes are many. */
const NONE: PolicySet = Object.freeze({});

/** Drops absent kinds, so that an empty set has no keys. */
export function toPolicySet(input: PolicyInput | undefined): PolicySet {
  if (input === undefined) return NONE;
  const set: Record<string, unknown> = {};
  for (const [kind, value] of Object.entries(input)) if (value !== undefined) set[kind] = withoutUndefined(value);
  return set as { requestHeaderModifier?: HeaderModifier; urlRewrite?: UrlRewrite; requestRedirect?: RequestRedirect };
}

function withoutUndefined(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

/** Later sets win, kind by kind (reference 3). Most sets are empty: what need not be made again is returned as it is. */
export function mergePolicies(...sets: readonly PolicySet[]): PolicySet {
  const [only = NONE, ...others] = sets.filter((set) => Object.keys(set).length > 0);
  return others.length === 0 ? only : (Object.assign({}, only, ...others) as PolicySet);
}

/** Reports what the policies themselves refuse, such as a header that may not be set, as near as they tell. */
export function tryPolicies(set: PolicySet, phase: Phase, path: Path, report: Context["report"]): void {
  for (const [kind, value] of Object.entries(set)) {
    try {
      compilePolicies({ [kind]: value }, phase);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      // Their messages begin with the field: `urlRewrite.path.prefix: …`.
      const [, field = kind, message = text] = /^([\w.]+): (.*)$/s.exec(text) ?? [];
      report([...path, ...field.split(".")], { message });
    }
  }
}
