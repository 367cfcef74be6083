import {
  EXPERIMENTAL_GROUP,
  GATEWAY_GROUP,
  INGRESS_GROUP,
  type Kind,
  MULTICLUSTER_GROUP,
  TRACEGATE_GROUP,
} from "./objects.ts";

/** How the API server names the resources of a kind. */
export interface ResourceName {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

export const RESOURCES: { readonly [K in Kind]: ResourceName } = {
  CustomResourceDefinition: {
    group: "apiextensions.k8s.io",
    version: "v1",
    plural: "customresourcedefinitions",
    namespaced: false,
  },
  Namespace: { group: "", version: "v1", plural: "namespaces", namespaced: false },
  Service: { group: "", version: "v1", plural: "services", namespaced: true },
  EndpointSlice: { group: "discovery.k8s.io", version: "v1", plural: "endpointslices", namespaced: true },
  ServiceImport: { group: MULTICLUSTER_GROUP, version: "v1alpha1", plural: "serviceimports", namespaced: true },
  Secret: { group: "", version: "v1", plural: "secrets", namespaced: true },
  ConfigMap: { group: "", version: "v1", plural: "configmaps", namespaced: true },
  Pod: { group: "", version: "v1", plural: "pods", namespaced: true },
  Node: { group: "", version: "v1", plural: "nodes", namespaced: false },
  Deployment: { group: "apps", version: "v1", plural: "deployments", namespaced: true },
  DaemonSet: { group: "apps", version: "v1", plural: "daemonsets", namespaced: true },
  ServiceAccount: { group: "", version: "v1", plural: "serviceaccounts", namespaced: true },
  PodDisruptionBudget: { group: "policy", version: "v1", plural: "poddisruptionbudgets", namespaced: true },
  HorizontalPodAutoscaler: {
    group: "autoscaling",
    version: "v2",
    plural: "horizontalpodautoscalers",
    namespaced: true,
  },
  GatewayClass: { group: GATEWAY_GROUP, version: "v1", plural: "gatewayclasses", namespaced: false },
  Gateway: { group: GATEWAY_GROUP, version: "v1", plural: "gateways", namespaced: true },
  ListenerSet: { group: GATEWAY_GROUP, version: "v1", plural: "listenersets", namespaced: true },
  HTTPRoute: { group: GATEWAY_GROUP, version: "v1", plural: "httproutes", namespaced: true },
  GRPCRoute: { group: GATEWAY_GROUP, version: "v1", plural: "grpcroutes", namespaced: true },
  TLSRoute: { group: GATEWAY_GROUP, version: "v1", plural: "tlsroutes", namespaced: true },
  TCPRoute: { group: GATEWAY_GROUP, version: "v1", plural: "tcproutes", namespaced: true },
  UDPRoute: { group: GATEWAY_GROUP, version: "v1", plural: "udproutes", namespaced: true },
  ReferenceGrant: { group: GATEWAY_GROUP, version: "v1", plural: "referencegrants", namespaced: true },
  BackendTLSPolicy: { group: GATEWAY_GROUP, version: "v1", plural: "backendtlspolicies", namespaced: true },
  XBackendTrafficPolicy: {
    group: EXPERIMENTAL_GROUP,
    version: "v1alpha1",
    plural: "xbackendtrafficpolicies",
    namespaced: true,
  },
  IngressClass: { group: INGRESS_GROUP, version: "v1", plural: "ingressclasses", namespaced: false },
  Ingress: { group: INGRESS_GROUP, version: "v1", plural: "ingresses", namespaced: true },
  TracegatePolicy: { group: TRACEGATE_GROUP, version: "v1alpha1", plural: "tracegatepolicies", namespaced: true },
  TracegateBackend: { group: TRACEGATE_GROUP, version: "v1alpha1", plural: "tracegatebackends", namespaced: true },
  TracegateParameters: { group: TRACEGATE_GROUP, version: "v1alpha1", plural: "tracegateparameters", namespaced: true },
};
