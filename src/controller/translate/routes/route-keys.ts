/** Which routes name a Gateway or ListenerSet as a parent. */
import { nameOfKey } from "../../../base/object-key.ts";
import { refKey } from "../../../kube/keys.ts";
import { GATEWAY_GROUP, type KubeObject, type ParentReference } from "../../../kube/objects.ts";
import { defineIndex, defineQuery, type Index, type Read } from "../../graph/graph.ts";
import { gatewayModel } from "../listeners/gateways.ts";
import { ingressesOfGateway } from "../listeners/ingresses.ts";
import { type GatewayRouteKind, ROUTE_KINDS } from "../model/model.ts";

interface RouteObject extends KubeObject {
  readonly kind: GatewayRouteKind;
  readonly spec: { readonly parentRefs?: readonly ParentReference[] };
}

/** Routes by `<parent kind>/<namespace>/<name>`. */
const BY_PARENT: { readonly [K in GatewayRouteKind]: Index<K> } = {
  HTTPRoute: defineIndex("HTTPRoute", parentsOf),
  GRPCRoute: defineIndex("GRPCRoute", parentsOf),
  TLSRoute: defineIndex("TLSRoute", parentsOf),
  TCPRoute: defineIndex("TCPRoute", parentsOf),
  UDPRoute: defineIndex("UDPRoute", parentsOf),
};

function parentsOf({ metadata, spec }: RouteObject): readonly string[] {
  const parents = (spec.parentRefs ?? [])
    .filter(({ group = GATEWAY_GROUP }) => group === GATEWAY_GROUP)
    .map(({ kind = "Gateway", namespace = metadata.namespace, name }) => refKey({ kind, namespace, name }));
  return [...new Set(parents)];
}

/**
 * Keys (`<kind>/<namespace>/<name>`) of the routes that name a parent. A separate query: a route that changes leaves the list
 * as it is.
 */
const routesOfParent = defineQuery<readonly string[]>("routesOfParent", (read, parent) =>
  ROUTE_KINDS.flatMap((kind) => find(read, kind, parent).map(({ metadata }) => refKey({ kind, ...metadata }))),
);

function find(read: Read, kind: GatewayRouteKind, parent: string): readonly KubeObject[] {
  return read.find<GatewayRouteKind>(BY_PARENT[kind] as Index<GatewayRouteKind>, parent);
}

/** Keys of the routes that name a Gateway of ours or one of its ListenerSets, attached or not, and of the Ingresses that it serves. */
export const routesOfGateway = defineQuery<readonly string[]>("routesOfGateway", (read, key) => {
  const listeners = read.query(gatewayModel, key)?.listeners ?? [];
  const sets = listeners.flatMap(({ listenerSet }) =>
    listenerSet === undefined ? [] : [refKey({ kind: "ListenerSet", ...nameOfKey(listenerSet) })],
  );
  const parents = [refKey({ kind: "Gateway", ...nameOfKey(key) }), ...new Set(sets)];
  const ingresses = read.query(ingressesOfGateway, key).map((each) => refKey({ kind: "Ingress", ...nameOfKey(each) }));
  return [...new Set([...parents.flatMap((parent) => read.query(routesOfParent, parent)), ...ingresses])];
});
