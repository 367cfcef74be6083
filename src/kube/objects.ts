/**
 * Kubernetes objects as the API server sends them: only the fields that tracegate reads, all optional ones as they may be absent.
 * Gateway API types follow v1.6 (experimental channel). Values are as users wrote them: the CRDs have validated their shape.
 */

import type { IngressClassSpec, IngressSpec } from "./ingress.ts";

export interface ObjectMeta {
  readonly name: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  /** RFC 3339, in seconds. */
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/** metav1.Condition; `lastTransitionTime` is set when it is written. */
export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  readonly lastTransitionTime?: string;
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
    readonly values?: readonly string[];
  }[];
}

// Cluster

/** Only its metadata is read. Its name is `<plural>.<group>`. */
interface CustomResourceDefinition extends KubeObject {
  readonly kind: "CustomResourceDefinition";
}

// Core

export interface Namespace extends KubeObject {
  readonly kind: "Namespace";
}

export interface Service extends KubeObject {
  readonly kind: "Service";
  readonly spec: {
    readonly type?: "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName";
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly ipFamilies?: readonly ("IPv4" | "IPv6")[];
    readonly externalName?: string;
    readonly selector?: Readonly<Record<string, string>>;
    readonly ports?: readonly ServicePort[];
    readonly trafficDistribution?: string;
    readonly internalTrafficPolicy?: string;
  };
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] };
  };
}

export interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: "TCP" | "UDP" | "SCTP";
  readonly targetPort?: number | string;
  readonly appProtocol?: string;
}

/** A Service of a set of clusters (multicluster.x-k8s.io, KEP-1645). */
export interface ServiceImport extends KubeObject {
  readonly kind: "ServiceImport";
  readonly spec?: { readonly ports?: readonly ServicePort[]; readonly ips?: readonly string[] };
}

export interface EndpointSlice extends KubeObject {
  readonly kind: "EndpointSlice";
  readonly addressType: "IPv4" | "IPv6" | "FQDN";
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
    readonly targetRef?: { readonly kind?: string; readonly name?: string; readonly namespace?: string };
    readonly nodeName?: string;
    readonly zone?: string;
  }[];
  readonly ports?: readonly {
    readonly name?: string;
    readonly port?: number;
    readonly protocol?: string;
    readonly appProtocol?: string;
  }[];
}

export interface Secret extends KubeObject {
  readonly kind: "Secret";
  readonly type?: string;
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>;
}

interface ConfigMap extends KubeObject {
  readonly kind: "ConfigMap";
  readonly data?: Readonly<Record<string, string>>;
  /** Base64. */
  readonly binaryData?: Readonly<Record<string, string>>;
}

export interface Pod extends KubeObject {
  readonly kind: "Pod";
  readonly spec?: {
    readonly nodeName?: string;
    readonly serviceAccountName?: string;
    readonly readinessGates?: readonly unknown[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

export interface ContainerStatus {
  readonly image?: string;
  readonly restartCount?: number;
  readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } };
}

interface Node extends KubeObject {
  readonly kind: "Node";
}

export interface Deployment extends KubeObject {
  readonly kind: "Deployment";
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly conditions?: readonly Condition[];
  };
}

export interface DaemonSet extends KubeObject {
  readonly kind: "DaemonSet";
  readonly status?: {
    readonly observedGeneration?: number;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberAvailable?: number;
  };
}

interface ServiceAccount extends KubeObject {
  readonly kind: "ServiceAccount";
}

interface PodDisruptionBudget extends KubeObject {
  readonly kind: "PodDisruptionBudget";
}

interface HorizontalPodAutoscaler extends KubeObject {
  readonly kind: "HorizontalPodAutoscaler";
}

// Gateway API

export interface GatewayClass extends KubeObject {
  readonly kind: "GatewayClass";
  readonly spec: { readonly controllerName: string; readonly parametersRef?: ParametersReference };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly supportedFeatures?: readonly { readonly name: string }[];
  };
}

export interface ParametersReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

export interface Gateway extends KubeObject {
  readonly kind: "Gateway";
  readonly spec: {
    readonly gatewayClassName: string;
    readonly listeners?: readonly GatewayListener[];
    readonly addresses?: readonly { readonly type?: string; readonly value?: string }[];
    readonly infrastructure?: {
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
      readonly parametersRef?: ParametersReference;
    };
    readonly allowedListeners?: { readonly namespaces?: NamespacesFrom };
    readonly tls?: {
      readonly backend?: { readonly clientCertificateRef?: SecretReference };
      readonly frontend?: {
        readonly default?: FrontendTls;
        readonly perPort?: readonly { readonly port: number; readonly tls?: FrontendTls }[];
      };
    };
  };
  readonly status?: GatewayStatus;
}

export interface FrontendTls {
  readonly validation?: {
    readonly caCertificateRefs?: readonly ObjectReference[];
    readonly mode?: "AllowValidOnly" | "AllowInsecureFallback";
  };
}

export interface NamespacesFrom {
  readonly from?: "All" | "Selector" | "Same" | "None";
  readonly selector?: LabelSelector;
}

export interface GatewayListener {
  readonly name: string;
  readonly hostname?: string;
  readonly port: number;
  readonly protocol: string;
  readonly tls?: {
    readonly mode?: "Terminate" | "Passthrough";
    readonly certificateRefs?: readonly SecretReference[];
    readonly options?: Readonly<Record<string, string>>;
  };
  readonly allowedRoutes?: {
    readonly namespaces?: NamespacesFrom;
    readonly kinds?: readonly RouteGroupKind[];
  };
}

export interface RouteGroupKind {
  readonly group?: string;
  readonly kind: string;
}

interface SecretReference {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
}

interface ObjectReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

interface ListenerStatus {
  readonly name: string;
  readonly supportedKinds: readonly RouteGroupKind[];
  readonly attachedRoutes: number;
  readonly conditions: readonly Condition[];
}

export interface GatewayStatus {
  readonly addresses?: readonly { readonly type?: string; readonly value: string }[];
  readonly conditions?: readonly Condition[];
  readonly listeners?: readonly ListenerStatus[];
  readonly attachedListenerSets?: number;
}

export interface ListenerSet extends KubeObject {
  readonly kind: "ListenerSet";
  readonly spec: {
    readonly parentRef: {
      readonly group?: string;
      readonly kind?: string;
      readonly name: string;
      readonly namespace?: string;
    };
    readonly listeners?: readonly GatewayListener[];
  };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly listeners?: readonly ListenerStatus[];
  };
}

export interface ParentReference {
  readonly group?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name: string;
  readonly sectionName?: string;
  readonly port?: number;
}

export interface RouteParentStatus {
  readonly parentRef: ParentReference;
  readonly controllerName: string;
  readonly conditions: readonly Condition[];
}

/** A route of any kind. Those of TCP and UDP have no host names. */
interface RouteObject<K extends string, Rule> extends KubeObject {
  readonly kind: K;
  readonly spec: {
    readonly parentRefs?: readonly ParentReference[];
    readonly hostnames?: readonly string[];
    readonly rules?: readonly Rule[];
  };
  readonly status?: { readonly parents?: readonly RouteParentStatus[] };
}

export interface BackendReference {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly port?: number;
  readonly weight?: number;
}

export interface HttpBackendReference extends BackendReference {
  readonly filters?: readonly HttpRouteFilter[];
}

export type HttpRoute = RouteObject<"HTTPRoute", HttpRouteRule>;

export interface HttpRouteRule {
  readonly name?: string;
  readonly matches?: readonly HttpRouteMatch[];
  readonly filters?: readonly HttpRouteFilter[];
  readonly backendRefs?: readonly HttpBackendReference[];
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string };
  readonly retry?: { readonly codes?: readonly number[]; readonly attempts?: number; readonly backoff?: string };
  readonly sessionPersistence?: unknown;
}

export interface HttpRouteMatch {
  readonly path?: { readonly type?: "Exact" | "PathPrefix" | "RegularExpression"; readonly value?: string };
  readonly headers?: readonly NameMatch[];
  readonly queryParams?: readonly NameMatch[];
  readonly method?: string;
}

export interface NameMatch {
  readonly type?: "Exact" | "RegularExpression";
  readonly name: string;
  readonly value: string;
}

export interface HeaderFilter {
  readonly set?: readonly { readonly name: string; readonly value: string }[];
  readonly add?: readonly { readonly name: string; readonly value: string }[];
  readonly remove?: readonly string[];
}

export interface PathModifier {
  readonly type: "ReplaceFullPath" | "ReplacePrefixMatch";
  readonly replaceFullPath?: string;
  readonly replacePrefixMatch?: string;
}

export interface HttpRouteFilter {
  readonly type: string;
  readonly requestHeaderModifier?: HeaderFilter;
  readonly responseHeaderModifier?: HeaderFilter;
  readonly requestMirror?: {
    readonly backendRef: BackendReference;
    readonly percent?: number;
    readonly fraction?: { readonly numerator: number; readonly denominator?: number };
  };
  readonly requestRedirect?: {
    readonly scheme?: string;
    readonly hostname?: string;
    readonly path?: PathModifier;
    readonly port?: number;
    readonly statusCode?: number;
  };
  readonly urlRewrite?: { readonly hostname?: string; readonly path?: PathModifier };
  readonly cors?: {
    readonly allowOrigins?: readonly string[];
    readonly allowCredentials?: boolean;
    readonly allowMethods?: readonly string[];
    readonly allowHeaders?: readonly string[];
    readonly exposeHeaders?: readonly string[];
    /** Seconds. */
    readonly maxAge?: number;
  };
  readonly extensionRef?: { readonly group: string; readonly kind: string; readonly name: string };
  readonly externalAuth?: ExternalAuthFilter;
}

/** Experimental (GEP-1494). */
export interface ExternalAuthFilter {
  readonly protocol: "GRPC" | "HTTP";
  readonly backendRef: BackendReference;
  readonly grpc?: { readonly allowedHeaders?: readonly string[] };
  readonly http?: {
    readonly path?: string;
    readonly allowedHeaders?: readonly string[];
    readonly allowedResponseHeaders?: readonly string[];
  };
  /** Bytes. */
  readonly forwardBody?: { readonly maxSize?: number };
}

/** Everything but its matches is as in HTTPRoutes. */
export interface GrpcRouteRule extends Pick<HttpRouteRule, "name" | "filters" | "backendRefs" | "sessionPersistence"> {
  readonly matches?: readonly {
    readonly method?: {
      readonly type?: "Exact" | "RegularExpression";
      readonly service?: string;
      readonly method?: string;
    };
    readonly headers?: readonly NameMatch[];
  }[];
}

export type GrpcRoute = RouteObject<"GRPCRoute", GrpcRouteRule>;

interface NetworkRouteRule {
  readonly name?: string;
  readonly backendRefs?: readonly BackendReference[];
}

export type TlsRoute = RouteObject<"TLSRoute", NetworkRouteRule>;

export type TcpRoute = RouteObject<"TCPRoute", NetworkRouteRule>;

export type UdpRoute = RouteObject<"UDPRoute", NetworkRouteRule>;

interface ReferenceGrant extends KubeObject {
  readonly kind: "ReferenceGrant";
  readonly spec: {
    readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
    readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
  };
}

export interface PolicyTargetReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly sectionName?: string;
}

export interface PolicyAncestorStatus {
  readonly ancestorRef: ParentReference;
  readonly controllerName: string;
  readonly conditions: readonly Condition[];
}

export interface BackendTlsPolicy extends KubeObject {
  readonly kind: "BackendTLSPolicy";
  readonly spec: {
    readonly targetRefs: readonly PolicyTargetReference[];
    readonly validation: {
      readonly hostname: string;
      readonly caCertificateRefs?: readonly ObjectReference[];
      readonly wellKnownCACertificates?: string;
      readonly subjectAltNames?: readonly {
        readonly type: "Hostname" | "URI";
        readonly hostname?: string;
        readonly uri?: string;
      }[];
    };
    readonly options?: Readonly<Record<string, string>>;
  };
  readonly status?: { readonly ancestors?: readonly PolicyAncestorStatus[] };
}

/** gateway.networking.x-k8s.io/v1alpha1 (GEP-1619, GEP-3388); has a policy's fields of sessions. */
export interface XBackendTrafficPolicy extends KubeObject {
  readonly kind: "XBackendTrafficPolicy";
  readonly spec: {
    readonly targetRefs: readonly Omit<PolicyTargetReference, "sectionName">[];
    readonly sessionPersistence?: unknown;
    readonly retryConstraint?: unknown;
  };
  readonly status?: { readonly ancestors?: readonly PolicyAncestorStatus[] };
}

// networking.k8s.io/v1

export interface Ingress extends KubeObject {
  readonly kind: "Ingress";
  readonly spec: IngressSpec;
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly unknown[] } };
}

interface IngressClass extends KubeObject {
  readonly kind: "IngressClass";
  readonly spec?: IngressClassSpec;
}

// tracegate.dev/v1alpha1; the spec is parsed by the schema of its kind.

export interface TracegatePolicy extends KubeObject {
  readonly kind: "TracegatePolicy";
  readonly spec: unknown;
  readonly status?: { readonly ancestors?: readonly PolicyAncestorStatus[] };
}

interface TracegateBackend extends KubeObject {
  readonly kind: "TracegateBackend";
  readonly spec: unknown;
  readonly status?: { readonly conditions?: readonly Condition[] };
}

interface TracegateParameters extends KubeObject {
  readonly kind: "TracegateParameters";
  readonly spec: unknown;
}

/** The kinds that the controller watches; of those from Deployment to HorizontalPodAutoscaler only the objects that it made. */
export interface Objects {
  readonly CustomResourceDefinition: CustomResourceDefinition;
  readonly Namespace: Namespace;
  readonly Service: Service;
  readonly EndpointSlice: EndpointSlice;
  readonly ServiceImport: ServiceImport;
  readonly Secret: Secret;
  readonly ConfigMap: ConfigMap;
  readonly Pod: Pod;
  readonly Node: Node;
  readonly Deployment: Deployment;
  readonly DaemonSet: DaemonSet;
  readonly ServiceAccount: ServiceAccount;
  readonly PodDisruptionBudget: PodDisruptionBudget;
  readonly HorizontalPodAutoscaler: HorizontalPodAutoscaler;
  readonly GatewayClass: GatewayClass;
  readonly Gateway: Gateway;
  readonly ListenerSet: ListenerSet;
  readonly HTTPRoute: HttpRoute;
  readonly GRPCRoute: GrpcRoute;
  readonly TLSRoute: TlsRoute;
  readonly TCPRoute: TcpRoute;
  readonly UDPRoute: UdpRoute;
  readonly ReferenceGrant: ReferenceGrant;
  readonly BackendTLSPolicy: BackendTlsPolicy;
  readonly XBackendTrafficPolicy: XBackendTrafficPolicy;
  readonly IngressClass: IngressClass;
  readonly Ingress: Ingress;
  readonly TracegatePolicy: TracegatePolicy;
  readonly TracegateBackend: TracegateBackend;
  readonly TracegateParameters: TracegateParameters;
}

export type Kind = keyof Objects;

export const GATEWAY_GROUP = "gateway.networking.k8s.io";
/** Of the kinds of the Gateway API that are experiments, whose names begin with X. */
export const EXPERIMENTAL_GROUP = "gateway.networking.x-k8s.io";
export const INGRESS_GROUP = "networking.k8s.io";
/** Of the API of services in several clusters. */
export const MULTICLUSTER_GROUP = "multicluster.x-k8s.io";
export const TRACEGATE_GROUP = "tracegate.dev";
