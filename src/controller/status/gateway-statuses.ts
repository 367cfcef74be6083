/** Statuses of GatewayClasses and Gateways. */
import { keyOfObject } from "../../kube/objects.ts";
import { defineQuery, type Read } from "../graph.ts";
import { isTrue } from "../translate/conditions.ts";
import { SUPPORTED_FEATURES } from "../translate/features.ts";
import { controllerName } from "../translate/gateway-class.ts";
import { gatewayModel } from "../translate/gateways.ts";
import { routesOfGateway } from "../translate/route-keys.ts";
import { routeModel } from "../translate/routes.ts";
import type { DesiredStatus } from "./desired.ts";

/** How many routes attach to each listener of a Gateway, by the key of the listener. */
const attachedRoutes = defineQuery<Readonly<Record<string, number>>>("attachedRoutes", (read, gateway) => {
  const counts: Record<string, number> = {};
  for (const route of read.query(routesOfGateway, gateway)) {
    // A route may name a listener by several parentRefs.
    const listeners = new Set(
      read.query(routeModel, route).parents.flatMap(({ attachments }) => attachments.map(({ listener }) => listener)),
    );
    for (const listener of listeners) counts[listener] = (counts[listener] ?? 0) + 1;
  }
  return counts;
});

export function gatewayClassStatuses(read: Read): readonly DesiredStatus[] {
  return read
    .list("GatewayClass")
    .map((found) => read.query(gatewayClassStatus, keyOfObject(found)))
    .filter((status) => status !== undefined);
}

export function gatewayStatuses(read: Read): readonly DesiredStatus[] {
  return read
    .list("Gateway")
    .map((gateway) => read.query(gatewayStatus, keyOfObject(gateway)))
    .filter((status) => status !== undefined);
}

const gatewayClassStatus = defineQuery<DesiredStatus | undefined>("gatewayClassStatus", (read, key) => {
  const found = read.get("GatewayClass", key);
  if (found?.spec.controllerName !== controllerName(read)) return undefined;
  return {
    kind: "GatewayClass",
    key,
    generation: found.metadata.generation ?? 0,
    status: {
      conditions: [isTrue("Accepted", "Accepted", "GatewayClass accepted by tracegate controller")],
      supportedFeatures: SUPPORTED_FEATURES,
    },
  };
});

const gatewayStatus = defineQuery<DesiredStatus | undefined>("gatewayStatus", (read, key) => {
  const gateway = read.get("Gateway", key);
  const model = read.query(gatewayModel, key);
  if (gateway === undefined || model === undefined) return undefined;
  const counts = read.query(attachedRoutes, key);
  return {
    kind: "Gateway",
    key,
    generation: gateway.metadata.generation ?? 0,
    status: {
      conditions: [...model.conditions],
      attachedListenerSets: model.listenerSets.length,
      listeners: model.listeners
        .filter(({ listenerSet }) => listenerSet === undefined)
        .map(({ key: listener, name, kinds, conditions }) => ({
          name,
          supportedKinds: kinds,
          attachedRoutes: counts[listener] ?? 0,
          conditions,
        })),
    },
  };
});
