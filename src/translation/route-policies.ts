/** Policies of routes and their backends, wherever the routes are written. */
import type { PolicyKind, PolicySet } from "../policies/policy-set.ts";
import { TCP_KINDS } from "./schema/policies.ts";

/** The policies that apply to connections without HTTP. ALPN is cleared, because the names of other protocols are unknown. */
export function withoutHttp(policies: PolicySet): PolicySet {
  const usable = Object.entries(policies).filter(([kind]) => TCP_KINDS.includes(kind as PolicyKind));
  const set: PolicySet = Object.fromEntries(usable);
  return set.backendTLS === undefined ? set : { ...set, backendTLS: { alpn: [], ...set.backendTLS } };
}
