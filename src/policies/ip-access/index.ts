/**
 * `ipAccess` (docs/policies/ip-access.md): allows or denies requests by the address of the client. In: networks, from the configuration
 * or from files. Out: nothing, or 403. Runs in the gateway and the route phase, before authentication. The same lists decide about
 * connections, in `proxy/ingress/ip-access.ts`.
 */
import { counted } from "../../base/counted.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import type { Authenticator } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { authenticatingHooks } from "../shared/credentials/authenticate.ts";
import { type AccessDecision, AccessLists, decisions, isAllowed, networksIn } from "./access-lists.ts";
import type { IpAccess } from "./schema.ts";

export const ipAccess = definePolicy({
  decisions,
  kind: "ipAccess",
  phases: ["gateway", "route"],
  connections: true,
  prepare(config: IpAccess) {
    const bind = prepareIpAccess(config);
    return (deps) => authenticatingHooks(bind(deps));
  },
  redact: (config) => config,
  // Lists may have thousands of lines, and every trace would repeat them.
  traceView: ({ allow, deny }) => ({ ...lengthOf("allow", allow), ...lengthOf("deny", deny) }),
  // A route cannot undo what its gateway denies.
  merge: (outer, inner) => {
    const allow = inner.allow ?? outer.allow;
    const deny = [...(outer.deny ?? []), ...(inner.deny ?? [])];
    return { ...(allow !== undefined && { allow }), ...(deny.length > 0 && { deny }) };
  },
});

function lengthOf(side: string, list: IpAccess["allow"]): Readonly<Record<string, string>> {
  if (list === undefined) return {};
  return { [side]: counted(list.flatMap(networksIn).length, "network") };
}

/** Reads the lists. Throws a PolicyError for a line that is neither an address nor a network. */
export function prepareIpAccess(config: IpAccess): (deps: PolicyDeps) => Authenticator {
  const lists = new AccessLists(config);
  return ({ assumedAddress }) => ({
    verify({ clientAddress, clientIsReported }, trace) {
      const allowed = assumedAddress?.(lists.condition, clientIsReported);
      const decision: AccessDecision =
        allowed === undefined ? lists.decide(clientAddress) : { code: "assumed", allowed };
      if (!isAllowed(decision)) throw decisions.reject(trace, decision, "TG_AUTHORIZATION");
      trace?.report(decisions, decision);
      return asItIs;
    },
    discard: asItIs,
  });
}

/** An address is no credential that a request carries. */
function asItIs(): void {}
