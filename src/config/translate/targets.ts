import type { RouteBackend } from "../../ir/ir.ts";
import { mergePolicies } from "../../policies/merge.ts";
import type { Context, Path } from "./context.ts";
import { type PolicyInput, translatePolicies } from "./policies.ts";
import { reportUnknown, type TargetInput, translateTarget } from "./target.ts";

/** A route's backend with its reference resolved; `key` is used unless it refers to a named backend. */
export function translateBackend(
  input: TargetInput & { readonly policies?: PolicyInput | undefined; readonly weight: number },
  key: string,
  path: Path,
  context: Context,
): RouteBackend {
  const own = translatePolicies(input.policies, "backend", [...path, "policies"], context);
  if (input.backend === undefined)
    return { key, weight: input.weight, target: translateTarget(input, path, context), policies: own };
  const name = input.backend.replace(/^\//, "");
  const named = context.backends.get(name);
  if (named === undefined) {
    const known = [...context.backends.keys()].map((each) => `/${each}`);
    reportUnknown("backend", "backends", input.backend, known, [...path, "backend"], context);
    return { key, weight: input.weight, target: { type: "invalid", reference: input.backend }, policies: own };
  }
  return { key: named.key, weight: input.weight, target: named.target, policies: mergePolicies(named.policies, own) };
}
