import { defineQuery, type Read } from "../graph/graph.ts";
import { backendTlsStatuses } from "./backend-tls-statuses.ts";
import { backendTrafficStatuses } from "./backend-traffic-statuses.ts";
import type { DesiredStatus } from "./desired.ts";
import { gatewayClassStatuses, gatewayStatuses, listenerSetStatuses } from "./gateway-statuses.ts";
import { ingressStatuses } from "./ingress-statuses.ts";
import { backendStatuses, policyStatuses } from "./policy-statuses.ts";
import { routeStatuses } from "./route-statuses.ts";

/** Each returns the statuses of some kinds of objects. */
const STATUSES: readonly ((read: Read) => readonly DesiredStatus[])[] = [
  gatewayClassStatuses,
  gatewayStatuses,
  listenerSetStatuses,
  routeStatuses,
  backendTlsStatuses,
  backendTrafficStatuses,
  ingressStatuses,
  policyStatuses,
  backendStatuses,
];

/**
 * The statuses that all objects of ours should have; objects that are not ours have none. A status that has not changed is the
 * same object as before. Its key is empty.
 */
export const desiredStatuses = defineQuery<readonly DesiredStatus[]>("desiredStatuses", (read) =>
  STATUSES.flatMap((statuses) => statuses(read)),
);
