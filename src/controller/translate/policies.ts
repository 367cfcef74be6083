import { NO_POLICY_SET } from "../../policies/merge.ts";
import { defineQuery } from "../graph.ts";
import type { AttachedPolicies } from "./model.ts";

/** The object that policies attach to: `<kind>/<namespace>/<name>[/<section>]`, such as `Gateway/apps/web/https`. */
export function policyTarget(kind: string, namespace: string, name: string, section?: string): string {
  const target = `${kind}/${namespace}/${name}`;
  return section === undefined ? target : `${target}/${section}`;
}

/** What TracegatePolicies attach to a `policyTarget`: to that object or section only, not to what is around it. */
export const attachedPolicies = defineQuery<AttachedPolicies>("attachedPolicies", () => ({
  gateway: NO_POLICY_SET,
  route: NO_POLICY_SET,
  backend: NO_POLICY_SET,
}));
