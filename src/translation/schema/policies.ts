import { z } from "zod";
import type { PolicyKind } from "../../policies/policy-set.ts";
import { KINDS } from "../../policies/registry.ts";
import { health } from "../../policies/schema/upstream-settings.ts";
import { POLICY_SCHEMAS } from "../../policies/schemas.ts";
import type { Phase } from "../../trace/events.ts";

/** The `policies` object of a phase: an optional field for each kind that may run there. */
function policySet(phase: Phase) {
  const kinds = (Object.keys(POLICY_SCHEMAS) as PolicyKind[]).filter((kind) => KINDS[kind].phases.includes(phase));
  const shape = Object.fromEntries(kinds.map((kind) => [kind, POLICY_SCHEMAS[kind].schema.optional()]));
  return z.strictObject(shape as { [Kind in PolicyKind]: z.ZodOptional<(typeof POLICY_SCHEMAS)[Kind]["schema"]> });
}

export const backendPolicies = policySet("backend").meta({
  id: "BackendPolicies",
  description: "Policies of one backend.",
});
/** Policies of backends that a route may set for all of its own. */
export const ROUTE_BACKEND_KINDS = ["backendAuth", "backendTLS", "backendTunnel"] as const;

export const routePolicies = policySet("route")
  .extend(backendPolicies.pick({ backendAuth: true, backendTLS: true, backendTunnel: true }).shape)
  .meta({
    id: "RoutePolicies",
    description:
      "Policies of a route. backendAuth, backendTLS and backendTunnel apply to those of its backends that do not set them.",
  });
export const gatewayPolicies = policySet("gateway").meta({
  id: "GatewayPolicies",
  description: "Policies that run before a route is chosen.",
});
/** The backend policies that apply to connections without HTTP (docs/configuration.md#tcppolicies). */
export const tcpPolicies = backendPolicies
  .pick({ backendTLS: true, tcp: true, backendTunnel: true })
  .extend({
    health: health
      .omit({ unhealthyExpression: true })
      .optional()
      .describe("When endpoints that reject or break off connections get no new ones for a while."),
  })
  .meta({ id: "TcpPolicies", description: "How the backends of a TCP route are connected to." });

/** The names of those. */
export const TCP_KINDS = Object.keys(tcpPolicies.shape) as readonly PolicyKind[];

/** Kinds that apply to the connections of a listener without HTTP. */
export const CONNECTION_KINDS: readonly PolicyKind[] = (Object.keys(POLICY_SCHEMAS) as PolicyKind[]).filter(
  (kind) => KINDS[kind].connections === true,
);
