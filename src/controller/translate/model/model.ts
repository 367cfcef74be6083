/** What the queries of translation hand to each other. Plain data: results are compared by value. */
import type { Origin } from "../../../base/origin.ts";
import type { Listener, Route, TcpRoute } from "../../../ir/ir.ts";
import type { PhaseLevels } from "../../../ir/origins.ts";
import type { Condition, NamespacesFrom, ParentReference, RouteGroupKind } from "../../../kube/objects.ts";

/** Kinds with parentRefs. */
export type GatewayRouteKind = "HTTPRoute" | "GRPCRoute" | "TLSRoute" | "TCPRoute" | "UDPRoute";
/** Kinds that become routes. */
export type RouteKind = GatewayRouteKind | "Ingress";
export const ROUTE_KINDS: readonly GatewayRouteKind[] = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];

export const HTTP_KINDS: ReadonlySet<RouteKind> = new Set<RouteKind>(["HTTPRoute", "GRPCRoute", "Ingress"]);

/** A condition before it is written: without the generation and the time. */
export type ConditionDraft = Omit<Condition, "observedGeneration" | "lastTransitionTime">;

/** Why something is not accepted, or a reference not resolved: a condition's reason and message. */
export interface Problem {
  readonly reason: string;
  readonly message: string;
}

/** A Gateway of ours with every listener that it and its ListenerSets declare. Result of the query `gatewayModel`. */
export interface GatewayModel {
  /** `<namespace>/<name>` */
  readonly key: string;
  readonly listeners: readonly ListenerModel[];
  /** Keys (`<namespace>/<name>`) of the ListenerSets that it accepts, in order of precedence. */
  readonly listenerSets: readonly string[];
  readonly conditions: readonly ConditionDraft[];
  /** From `spec.tls.backend.clientCertificateRef`: presented to backends with TLS. PEM. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string };
}

/** One listener of a Gateway or of a ListenerSet. */
export interface ListenerModel {
  /** `<namespace>/<gateway>.<listener>`; of a set or Ingress `<namespace>/<gateway>.<its namespace>/<its name>.<listener>`. Unique in a proxy. */
  readonly key: string;
  /** `<namespace>/<name>` of the Gateway. */
  readonly gateway: string;
  /** `<namespace>/<name>` of the ListenerSet that declares it. */
  readonly listenerSet?: string;
  /** `<namespace>/<name>` of the Ingress whose `tls` declares it. */
  readonly ingress?: string;
  readonly name: string;
  readonly origin: Origin;
  readonly port: number;
  /** `unsupported`: the listener is not accepted. */
  readonly protocol: Listener["protocol"] | "unsupported";
  /** Lower-case; empty = any. */
  readonly hostname: string;
  /** The kinds that it takes; also `status.supportedKinds`. */
  readonly kinds: readonly RouteGroupKind[];
  readonly namespaces: Required<Pick<NamespacesFrom, "from">> & NamespacesFrom;
  /** Namespace of the Gateway or ListenerSet, which `Same` means. */
  readonly namespace: string;
  /** TLS or HTTPS. `passthrough`: TLS is routed by server name and not terminated. Absent where TLS cannot be served. */
  readonly tls?: Listener["tls"] | "passthrough";
  /** Routes can attach, even if it cannot be programmed. */
  readonly accepted: boolean;
  /** It serves traffic. */
  readonly programmed: boolean;
  readonly conditions: readonly ConditionDraft[];
}

/** Whether the Gateway itself declares a listener. */
export function isOfGateway({ listenerSet, ingress }: Pick<ListenerModel, "listenerSet" | "ingress">): boolean {
  return listenerSet === undefined && ingress === undefined;
}

/** A route with its parents and the listeners that it attaches to. Result of the query `routeModel`, whose key is `<kind>/<namespace>/<name>`. */
export interface RouteModel {
  /** One for each parentRef that names a Gateway or ListenerSet of ours, in their order. */
  readonly parents: readonly ParentModel[];
  /** Keys of services that its rules send to. */
  readonly services: readonly string[];
}

export interface ParentModel {
  readonly parentRef: ParentReference;
  /** `<namespace>/<name>` of the Gateway that the parent belongs to; absent if it belongs to none. */
  readonly gateway?: string;
  readonly conditions: readonly ConditionDraft[];
  /** The listeners that it attaches to; of a route without a valid rule those that respond to its requests with 500. */
  readonly attachments: readonly Attachment[];
}

/** The rules of a route at one listener. */
export interface Attachment {
  /** `ListenerModel.key` */
  readonly listener: string;
  readonly routes: readonly Route[];
  readonly tcpRoutes: readonly TcpRoute[];
}

/** What TracegatePolicies attach to one target. */
export interface AttachedPolicies extends PhaseLevels {
  /** Those with the inheritance `Override`, which win over narrower levels instead of being replaced by them. */
  readonly override: PhaseLevels;
}
