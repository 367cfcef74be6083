/** Which routes, and so which Gateways, call a Service. */
import { objectKey } from "../../../base/object-key.ts";
import { refKey } from "../../../kube/keys.ts";
import type {
  BackendReference,
  GrpcRoute,
  HttpRoute,
  Ingress,
  KubeObject,
  TcpRoute,
  TlsRoute,
  UdpRoute,
} from "../../../kube/objects.ts";
import { MULTICLUSTER_GROUP, TRACEGATE_GROUP } from "../../../kube/objects.ts";
import { defineIndex, defineQuery, type Index } from "../../graph/graph.ts";
import { ROUTE_KINDS, type RouteKind } from "../model/model.ts";
import { referenceOf } from "./ingress-rules.ts";
import { routeModel } from "./routes.ts";

/** Routes by `<namespace>/<name>` of the Services, and by the `refKey` of ServiceImports and TracegateBackends. */
const BY_SERVICE: { readonly [Kind in RouteKind]: Index<Kind> } = {
  HTTPRoute: defineIndex("HTTPRoute", ofHttp),
  GRPCRoute: defineIndex("GRPCRoute", ofHttp),
  TLSRoute: defineIndex("TLSRoute", ofConnections),
  TCPRoute: defineIndex("TCPRoute", ofConnections),
  UDPRoute: defineIndex("UDPRoute", ofConnections),
  Ingress: defineIndex("Ingress", ofIngress),
};

function ofHttp({ metadata, spec }: HttpRoute | GrpcRoute): readonly string[] {
  return servicesOf(
    metadata.namespace,
    (spec.rules ?? []).flatMap(({ backendRefs = [], filters = [] }) => [
      ...backendRefs,
      ...[...filters, ...backendRefs.flatMap((ref) => ref.filters ?? [])].flatMap(
        ({ requestMirror, externalAuth }) => requestMirror?.backendRef ?? externalAuth?.backendRef ?? [],
      ),
    ]),
  );
}

function ofConnections({ metadata, spec }: TlsRoute | TcpRoute | UdpRoute): readonly string[] {
  return servicesOf(
    metadata.namespace,
    (spec.rules ?? []).flatMap(({ backendRefs = [] }) => backendRefs),
  );
}

function ofIngress({ metadata, spec }: Ingress): readonly string[] {
  const backends = [
    ...(spec.rules ?? []).flatMap(({ http }) => (http?.paths ?? []).map(({ backend }) => backend)),
    ...(spec.defaultBackend === undefined ? [] : [spec.defaultBackend]),
  ];
  return servicesOf(metadata.namespace, backends.flatMap(referenceOf));
}

function servicesOf(owner: string, refs: readonly BackendReference[]): readonly string[] {
  const services = refs.flatMap(({ group = "", kind = "Service", namespace = owner, name }) => {
    const key = objectKey({ namespace, name });
    if (group === "" && kind === "Service") return key;
    const isFiled =
      (group === TRACEGATE_GROUP && kind === "TracegateBackend") ||
      (group === MULTICLUSTER_GROUP && kind === "ServiceImport");
    return isFiled ? refKey({ kind, namespace, name }) : [];
  });
  return [...new Set(services)];
}

/** Keys of the Gateways of ours that routes connect with a Service (`<namespace>/<name>`) or `TracegateBackend/…`. */
export const gatewaysOfService = defineQuery<readonly string[]>("gatewaysOfService", (read, service) => {
  const gateways = read.query(routesOfService, service).flatMap((route) => read.query(gatewaysOfRoute, route));
  return [...new Set(gateways)].sort();
});

/** Keys (`<kind>/<namespace>/<name>`) of the routes that refer to a Service. */
export const routesOfService = defineQuery<readonly string[]>("routesOfService", (read, service) =>
  [...ROUTE_KINDS, "Ingress" as const].flatMap((kind) => {
    const routes: readonly KubeObject[] = read.find<RouteKind>(BY_SERVICE[kind] as Index<RouteKind>, service);
    return routes.map(({ metadata }) => refKey({ kind, ...metadata }));
  }),
);

/** Of the Gateways that accept the route. A separate query: most changes of a route leave them as they are. */
export const gatewaysOfRoute = defineQuery<readonly string[]>("gatewaysOfRoute", (read, route) =>
  read
    .query(routeModel, route)
    .parents.flatMap(({ gateway, attachments }) => (gateway !== undefined && attachments.length > 0 ? gateway : [])),
);
