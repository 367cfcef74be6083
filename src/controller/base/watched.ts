/** Which objects of each kind the controller follows, and what it keeps of them. Nothing that a query reads may be missing. */
import type { ContainerStatus, Kind, Objects } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";
import { GATEWAY_NAME, OWNING_CLASS } from "./manifest.ts";

interface Watched<K extends Kind> {
  /** Only metadata is followed. */
  readonly metadataOnly?: boolean;
  /** Only referenced objects are read: see referenced-objects.ts. */
  readonly referenced?: boolean;
  /** Only with this setting. */
  readonly only?: "ingress";
  /** The controller also works without permission to list it. */
  readonly optional?: boolean;
  /** Selectors that the API server filters by. */
  readonly selectors?: Readonly<Record<string, string>>;
  /** Drops fields that the controller does not read, such as most of a Pod. */
  readonly trim?: (object: Objects[K]) => Objects[K];
}

/** Types of Secrets that a Gateway cannot use. Helm stores whole releases in Secrets, up to a megabyte each. */
const UNUSED_SECRETS = [
  "helm.sh/release.v1",
  "kubernetes.io/service-account-token",
  "kubernetes.io/dockerconfigjson",
  "kubernetes.io/dockercfg",
  "bootstrap.kubernetes.io/token",
];

/** The deployer follows what it has made itself. */
export const WATCHED: { readonly [K in Kind]?: Watched<K> } = {
  Namespace: { trim: withMetadataOnly },
  Service: {},
  EndpointSlice: {},
  ServiceImport: { optional: true },
  Secret: {
    metadataOnly: true,
    referenced: true,
    selectors: { fieldSelector: UNUSED_SECRETS.map((type) => `type!=${type}`).join(",") },
  },
  ConfigMap: { metadataOnly: true, referenced: true },
  Pod: {
    selectors: { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" },
    trim: trimPod,
  },
  Node: { trim: withMetadataOnly },
  // Which version of the Gateway API is installed.
  CustomResourceDefinition: { metadataOnly: true, optional: true },
  GatewayClass: {},
  Gateway: {},
  ListenerSet: {},
  HTTPRoute: {},
  GRPCRoute: {},
  TLSRoute: {},
  TCPRoute: {},
  UDPRoute: {},
  ReferenceGrant: {},
  BackendTLSPolicy: {},
  XBackendTrafficPolicy: {},
  IngressClass: { only: "ingress" },
  Ingress: { only: "ingress" },
  TracegatePolicy: {},
  TracegateBackend: {},
  TracegateParameters: {},
};

/** The kinds that are followed. `ingress`: also what Ingresses need. */
export function watchedKinds({ ingress }: { readonly ingress: boolean }): readonly Kind[] {
  return (Object.keys(WATCHED) as Kind[]).filter((kind) => ingress || WATCHED[kind]?.only !== "ingress");
}

/** Kinds that say how the cluster is. */
const OBSERVED: ReadonlySet<string> = new Set<Kind>(["Pod", "Node", "CustomResourceDefinition"]);

/** Whether people write objects of this kind that the controller reads. */
export function isWritten(kind: string): kind is Kind {
  return Object.hasOwn(WATCHED, kind) && !OBSERVED.has(kind);
}

/** The namespaces in which a kind is followed, one watch each; undefined: one watch for all, also for objects without a namespace. */
export function scopesOf(kind: Kind, namespaces: readonly string[]): readonly (string | undefined)[] {
  return RESOURCES[kind].namespaced && namespaces.length > 0 ? namespaces : [undefined];
}

/** With labels; annotations of nodes are large and change often. */
function withMetadataOnly<T extends Objects["Namespace" | "Node"]>({ apiVersion, kind, metadata }: T): T {
  const { annotations: _annotations, ...kept } = metadata;
  return { apiVersion, kind, metadata: kept } as T;
}

function trimPod({ apiVersion, kind, metadata, spec = {}, status = {} }: Objects["Pod"]): Objects["Pod"] {
  const { annotations: _annotations, ...keptMetadata } = metadata;
  const { nodeName, serviceAccountName, readinessGates } = spec;
  const { phase, podIP, podIPs, conditions, containerStatuses } = status;
  const isReady = conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
  // Only of a pod that is not ready, and not where gates may be the reason: see `isCutOff` of translate/discovery.ts.
  const kept = isReady || readinessGates !== undefined ? ["Ready"] : ["Ready", "ContainersReady"];
  const ready = conditions?.filter(({ type }) => kept.includes(type)).map(({ type, status }) => ({ type, status }));
  // Why a proxy does not start; other pods are backends, many, and only their readiness counts.
  const isProxy = (metadata.labels?.[GATEWAY_NAME] ?? metadata.labels?.[OWNING_CLASS]) !== undefined;
  const unscheduled = isProxy
    ? (conditions ?? []).filter(({ type, status }) => type === "PodScheduled" && status === "False")
    : [];
  return {
    apiVersion,
    kind,
    metadata: keptMetadata,
    spec: {
      ...(nodeName !== undefined && { nodeName }),
      ...(serviceAccountName !== undefined && { serviceAccountName }),
    },
    status: {
      ...(phase !== undefined && { phase }),
      ...(podIP !== undefined && { podIP }),
      ...(podIPs !== undefined && { podIPs }),
      ...(ready !== undefined && { conditions: [...ready, ...unscheduled] }),
      ...(isProxy && containerStatuses !== undefined && { containerStatuses: containerStatuses.map(trimContainer) }),
    },
  };
}

function trimContainer({ image, restartCount, state }: ContainerStatus): ContainerStatus {
  return {
    ...(image !== undefined && { image }),
    ...(restartCount !== undefined && { restartCount }),
    ...(state?.waiting !== undefined && { state: { waiting: state.waiting } }),
  };
}
