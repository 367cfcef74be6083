import type { HeaderModifier, PolicySet, RequestRedirect, UrlRewrite } from "../../ir/policies.ts";
import { compilePolicies } from "../../policies/compile.ts";
import type { PolicyEnvironment } from "../../policies/deps.ts";
import { NO_POLICY_SET } from "../../policies/merge.ts";
import type { Phase } from "../../trace/events.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import type { Context, Path } from "./context.ts";

/** A policy object as the schema gives it: absent kinds are missing or undefined. */
type PolicyInput = { readonly [Kind in keyof PolicySet]?: unknown };

/** Drops absent kinds, so that an empty set has no keys. */
export function toPolicySet(input: PolicyInput | undefined): PolicySet {
  if (input === undefined) return NO_POLICY_SET;
  const set: Record<string, unknown> = {};
  for (const [kind, value] of Object.entries(input)) if (value !== undefined) set[kind] = withoutUndefined(value);
  return set as { requestHeaderModifier?: HeaderModifier; urlRewrite?: UrlRewrite; requestRedirect?: RequestRedirect };
}

function withoutUndefined(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

/** Policies are created here only to hear what they refuse. */
const CHECKING: PolicyEnvironment = { hidden: sensitiveHeaders([]) };

/** Reports what the policies themselves refuse, such as a header that may not be set, as near as they tell. */
export function tryPolicies(set: PolicySet, phase: Phase, path: Path, report: Context["report"]): void {
  for (const [kind, value] of Object.entries(set)) {
    try {
      compilePolicies({ [kind]: value }, phase, CHECKING, "");
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      // Their messages begin with the field: `urlRewrite.path.prefix: …`.
      const [, field = kind, message = text] = /^([\w.]+): (.*)$/s.exec(text) ?? [];
      report([...path, ...field.split(".")], { message });
    }
  }
}
