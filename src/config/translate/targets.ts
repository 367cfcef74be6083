import type { RouteBackend, Target } from "../../ir/ir.ts";
import type { PolicySet } from "../../ir/policies.ts";
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
  if (input.backend === undefined) {
    const target = translateTarget(input, path, context);
    checkTunnel(target, own, path, context);
    return { key, weight: input.weight, target, policies: own };
  }
  const name = input.backend.replace(/^\//, "");
  const named = context.backends.get(name);
  if (named === undefined) {
    const known = [...context.backends.keys()].map((each) => `/${each}`);
    reportUnknown("backend", "backends", input.backend, known, [...path, "backend"], context);
    return { key, weight: input.weight, target: { type: "invalid", reference: input.backend }, policies: own };
  }
  const policies = mergePolicies(named.policies, own);
  checkTunnel(named.target, policies, path, context);
  return { key: named.key, weight: input.weight, target: named.target, policies };
}

/** Proxies connect to hosts. */
function checkTunnel({ type }: Target, { backendTunnel }: PolicySet, path: Path, { report }: Context): void {
  if (backendTunnel !== undefined && (type === "unix" || type === "internal"))
    report([...path, "policies", "backendTunnel"], {
      message: `no proxy can reach ${type === "unix" ? "a Unix socket" : "the admin API"}; leave it out`,
    });
}
