/** Statuses of routes, with one entry for each parent that is ours. */
import { objectKey } from "../../base/object-key.ts";
import { keyOfObject, refKey, refOf } from "../../kube/keys.ts";
import type { KubeObject, RouteParentStatus } from "../../kube/objects.ts";
import { defineIndex, defineQuery, type Index, type Read } from "../graph/graph.ts";
import { findingsCondition } from "../translate/model/conditions.ts";
import { controllerName } from "../translate/model/gateway-class.ts";
import { type ConditionDraft, type GatewayRouteKind, type ParentModel, ROUTE_KINDS } from "../translate/model/model.ts";
import { SHARD_NUMBERS, shardOf } from "../translate/model/shards.ts";
import { routeFindings } from "../translate/routes/route-findings.ts";
import { routeModel } from "../translate/routes/routes.ts";
import type { DesiredStatus } from "./desired.ts";

export function routeStatuses(read: Read): readonly DesiredStatus[] {
  return SHARD_NUMBERS.flatMap((shard) => read.query(statusesOfShard, String(shard)));
}

const statusesOfShard = defineQuery<readonly DesiredStatus[]>("statusesOfShard", (read, shard) =>
  ROUTE_KINDS.flatMap((kind) =>
    read
      .query(routesOfShard, [kind, shard])
      .map((route) => read.query(routeStatus, route))
      .filter((status) => status !== undefined),
  ),
);

/** Keys (`<kind>/<namespace>/<name>`) of routes. A query of its own: a route that changes leaves them as they are. */
const routesOfShard = defineQuery<readonly string[], readonly [GatewayRouteKind, string]>(
  "routesOfShard",
  (read, [kind, shard]) => {
    const routes: readonly KubeObject[] = read.find<GatewayRouteKind>(BY_SHARD[kind] as Index<GatewayRouteKind>, shard);
    return routes.map(({ metadata }) => refKey({ kind, ...metadata }));
  },
);

const inShard = (route: KubeObject): readonly string[] => [String(shardOf(keyOfObject(route)))];
const BY_SHARD: { readonly [K in GatewayRouteKind]: Index<K> } = {
  HTTPRoute: defineIndex("HTTPRoute", inShard),
  GRPCRoute: defineIndex("GRPCRoute", inShard),
  TLSRoute: defineIndex("TLSRoute", inShard),
  TCPRoute: defineIndex("TCPRoute", inShard),
  UDPRoute: defineIndex("UDPRoute", inShard),
};

/** Key: `<kind>/<namespace>/<name>`. undefined: no parent is ours or has been. */
const routeStatus = defineQuery<DesiredStatus | undefined>("routeStatus", (read, key) => {
  const { kind, ...ref } = refOf<GatewayRouteKind>(key);
  const name = objectKey(ref);
  const route = read.get(kind, name);
  if (route === undefined) return undefined;
  const { parents } = read.query(routeModel, key);
  const written: readonly RouteParentStatus[] = route.status?.parents ?? [];
  const ours = controllerName(read);
  if (parents.length === 0 && !written.some((parent) => parent.controllerName === ours)) return undefined;
  return {
    kind,
    key: name,
    generation: route.metadata.generation ?? 0,
    status: {
      parents: parents.map((parent) => ({
        parentRef: parent.parentRef,
        conditions: [...parent.conditions, ...findingsAt(read, key, parent)],
      })),
    },
  };
});

/** What lints say about the route at the listeners of a parent. */
function findingsAt(read: Read, route: string, { gateway, attachments }: ParentModel): readonly ConditionDraft[] {
  const found = gateway === undefined ? [] : (read.query(routeFindings, gateway)[route] ?? []);
  return findingsCondition(found.filter((each) => attachments.some(({ listener }) => listener === each.listener)));
}
