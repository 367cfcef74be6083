/**
 * The resources of the configuration stream: the parts of one gateway's IR, each with a name and a version. The controller makes
 * them, a proxy assembles them to an `Ir`. There are two types: `Address` (services and workloads), which
 * changes with every pod, and `Resource` (everything else).
 */
import { objectKey } from "../base/object-key.ts";
import type { Backend, Bind, Listener, Route, TargetedPolicy, TcpRoute } from "../ir/ir.ts";
import type { Service, Workload } from "../upstream/discovery/discovery.ts";

export const RESOURCE_TYPE = "type.googleapis.com/tracegate.dev.config.v1.Resource";
/** Prefix of a subscription by which a proxy requests that a document, named by its URL, be fetched again; older controllers ignore it. */
export const WANTED = "document:";
export const ADDRESS_TYPE = "type.googleapis.com/tracegate.dev.config.v1.Address";

/** Details of a rejection: messages of this type name the Gateways that it is about. */
export const HELD_BACK_TYPE = "type.googleapis.com/tracegate.dev.config.v1.HeldBack";

/**
 * A Gateway that keeps what a proxy applied for it last, or has no listeners there, because its part of a state cannot be applied. The other Gateways that
 * share the proxy have theirs.
 */
export interface HeldBack {
  /** `<namespace>/<name>` */
  readonly gateway: string;
  readonly reason: string;
}

/** `<namespace>/<name>` of the Gateway of a listener. */
export function gatewayOf({
  gatewayNamespace,
  gatewayName,
}: Pick<Listener, "gatewayNamespace" | "gatewayName">): string {
  return objectKey({ namespace: gatewayNamespace, name: gatewayName });
}

/** Names: `bind/<bind key>`, `listener/<listener key>`, `route/<listener key>/<route key>`, `backend/<key>`, `policy/<key>`. */
export type Resource =
  | { readonly kind: "bind"; readonly bind: Omit<Bind, "listeners"> }
  | {
      readonly kind: "listener";
      /** Key of its bind. */
      readonly bind: string;
      readonly listener: Omit<Listener, "routes" | "tcpRoutes">;
    }
  | { readonly kind: "route"; readonly listener: string; readonly route: Route }
  /** Of connections (TCP, TLS) and of UDP sessions. */
  | { readonly kind: "tcpRoute"; readonly listener: string; readonly route: TcpRoute }
  | { readonly kind: "backend"; readonly backend: Backend }
  | { readonly kind: "policy"; readonly policy: TargetedPolicy };

export type RouteResource = Extract<Resource, { kind: "route" | "tcpRoute" }>;

/** Names: `service/<service key>`, `workload/<uid>`. */
export type Address =
  | { readonly kind: "service"; readonly service: Service }
  | { readonly kind: "workload"; readonly workload: Workload };

/**
 * Names the proxies that run one state, their fleet: `<namespace>/<name>` of their Gateway, or this, of the class whose Gateways share
 * them. No namespace has upper-case letters.
 */
export function fleetOfClass(gatewayClass: string): string {
  return `GatewayClass/${gatewayClass}`;
}

/** The class whose Gateways share the proxies of a fleet; undefined: they serve a single Gateway. */
export function classOfFleet(fleet: string): string | undefined {
  return fleet.startsWith(SHARED) ? fleet.slice(SHARED.length) : undefined;
}

const SHARED = fleetOfClass("");

/** The whole state of one fleet, by name. A resource that has not changed is the same object as before. */
export interface GatewayState {
  readonly resources: ReadonlyMap<string, Resource>;
  readonly addresses: ReadonlyMap<string, Address>;
}

/**
 * The state of a fleet that several gateways share. Their listeners are told apart by their keys; whatever else has the same name in two of
 * them, such as a port or a service, is the same.
 */
export function mergeStates(states: readonly GatewayState[]): GatewayState {
  return {
    resources: new Map(states.flatMap(({ resources }) => [...resources])),
    addresses: new Map(states.flatMap(({ addresses }) => [...addresses])),
  };
}

export function nameOfResource(resource: Resource): string {
  switch (resource.kind) {
    case "bind":
      return `bind/${resource.bind.key}`;
    case "listener":
      return `listener/${resource.listener.key}`;
    case "route":
    case "tcpRoute":
      return `route/${resource.listener}/${resource.route.key}`;
    case "backend":
      return `backend/${resource.backend.key}`;
    case "policy":
      return `policy/${resource.policy.key}`;
  }
}

export function nameOfAddress(address: Address): string {
  return address.kind === "service"
    ? `service/${address.service.namespace}/${address.service.hostname}`
    : `workload/${address.workload.uid}`;
}

/** The method of the stream: Envoy's delta aggregated discovery. */
export const DELTA_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
