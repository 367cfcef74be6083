import { createHash } from "node:crypto";
import type { Gateway, OwnerReference } from "../../kube/objects.ts";
import {
  apiVersionOf,
  CONTROLLER,
  GATEWAY_CLASS_NAME,
  type JsonObject,
  MANAGED_BY,
  MANAGER,
  type Manifest,
  OWNING_CLASS,
  type OwnedKind,
  PODS,
  SHARED_BY,
  shortName,
} from "../base/manifest.ts";
import type { ControllerSettings } from "../base/settings.ts";
import type { Parameters } from "../crd/parameters.ts";
import { strategicMerge } from "./merge.ts";
import type { Owner } from "./owner.ts";
import { asJsonObject, lastOf, OVERLAYS } from "./parameters.ts";
import { CA_KEY, caConfigMapName, podTemplate, proxyConfig, secretName, selectorOf } from "./workload.ts";

/** A port that proxies listen on. */
export interface GatewayPort {
  readonly port: number;
  readonly protocol: "TCP" | "UDP";
}

interface DeployInput {
  readonly owner: Owner;
  /** Distinct, in order. */
  readonly ports: readonly GatewayPort[];
  /** Of the class and of a single Gateway, in this order: later ones win. */
  readonly layers: readonly Parameters[];
  readonly settings: ControllerSettings;
  /** Version of tracegate. */
  readonly version: string;
  /** PEM: what proxies trust as the controller; needed if the stream has TLS. */
  readonly xdsCa: string | undefined;
}

/** A Service must have a port, so one without listeners has a port on which nothing listens. */
const NO_LISTENERS: readonly GatewayPort[] = [{ port: 443, protocol: "TCP" }];

/**
 * The objects that run the proxies of a Gateway, or of several (docs/kubernetes.md#what-runs-where), in the order in which they are to be
 * applied, except for the Secret with the key of login cookies, which is made once and kept.
 */
export function gatewayObjects(input: DeployInput): Manifest[] {
  const { owner, layers, settings, xdsCa } = input;
  const config = proxyConfig(layers, settings.proxy.admin);
  const { fleet } = owner;
  const { name } = fleet;
  const workload = lastOf(layers, (layer) => layer.workload?.kind) ?? "Deployment";
  const make = (kind: OwnedKind, fields: JsonObject, named = name): Manifest =>
    withOverlays(manifest(input, kind, named, fields), layers);
  const wanted = (kind: keyof typeof OVERLAYS): boolean => layers.some((layer) => layer[OVERLAYS[kind]] !== undefined);
  const selector = { matchLabels: selectorOf(fleet) };
  // A DaemonSet has as many pods as the cluster has nodes.
  const scaled = wanted("HorizontalPodAutoscaler") && workload === "Deployment";
  const pods = make(workload, { spec: workloadSpec(input, workload, config) });
  const autoscaler = scaled
    ? make("HorizontalPodAutoscaler", { spec: { scaleTargetRef: scaleTarget(name) } })
    : undefined;
  const budget = wanted("PodDisruptionBudget") ? {} : budgetOf(autoscaler ?? pods);
  return [
    make("ServiceAccount", { automountServiceAccountToken: false }),
    make("ConfigMap", { data: { "config.yaml": config } }),
    ...(settings.xds.mode === "tls"
      ? [make("ConfigMap", { data: { [CA_KEY]: xdsCa ?? "" } }, caConfigMapName(owner))]
      : []),
    make("Service", { spec: serviceSpec(input) }),
    withPodsDigest(scaled ? withoutReplicas(pods) : pods),
    ...(budget === undefined ? [] : [make("PodDisruptionBudget", { spec: { selector, ...budget } })]),
    ...(autoscaler === undefined ? [] : [autoscaler]),
  ];
}

/** The Secret with the key of login cookies, without the key. */
export function sessionSecret(input: Pick<DeployInput, "owner" | "version" | "settings">): Manifest {
  return manifest(input, "Secret", secretName(input.owner), { type: "Opaque" });
}

/** With the metadata of everything that runs the proxies. */
function manifest(
  { owner, version, settings }: Pick<DeployInput, "owner" | "version" | "settings">,
  kind: OwnedKind,
  name: string,
  fields: JsonObject,
): Manifest {
  const { fleet, className, gateway } = owner;
  return {
    apiVersion: apiVersionOf(kind),
    kind,
    metadata: {
      name,
      namespace: fleet.namespace,
      labels: { ...labelsOf(owner), "app.kubernetes.io/version": labelValue(version) },
      annotations: {
        ...gateway?.spec.infrastructure?.annotations,
        [CONTROLLER]: settings.controllerName,
        ...(gateway === undefined && { [SHARED_BY]: className }),
      },
      // Without blockOwnerDeletion, which some clusters only grant to those who may change finalizers of Gateways.
      ...(gateway !== undefined && { ownerReferences: [{ ...ownerOf(gateway), controller: true }] }),
    },
    ...fields,
  };
}

function ownerOf({ apiVersion, kind, metadata }: Gateway): OwnerReference {
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid ?? "" };
}

/** Also of the pods, except the version of the controller: an upgrade that leaves the image alone must not replace them. */
function labelsOf({ fleet, className, gateway }: Owner): Readonly<Record<string, string>> {
  // With this label, the Service of shared proxies in the namespace would send requests for all their Gateways to the pods of this one.
  const { [OWNING_CLASS]: _, ...labels } = gateway?.spec.infrastructure?.labels ?? {};
  return {
    ...labels,
    "app.kubernetes.io/name": fleet.name,
    "app.kubernetes.io/instance": fleet.name,
    [MANAGED_BY]: MANAGER,
    [GATEWAY_CLASS_NAME]: shortName(className),
    ...selectorOf(fleet),
  };
}

function labelValue(text: string): string {
  return text.replace(/[^\w.-]/g, "-").slice(0, 63);
}

function serviceSpec({ owner, ports }: DeployInput): JsonObject {
  // A Service has one; the Gateway is not programmed before it has all that it asks for. No Gateway decides that of others.
  const address = owner.gateway?.spec.addresses?.find(
    ({ type = "IPAddress", value = "" }) => type === "IPAddress" && value !== "",
  );
  return {
    type: "LoadBalancer",
    selector: selectorOf(owner.fleet),
    ports: (ports.length > 0 ? ports : NO_LISTENERS).map(({ port, protocol }) => ({
      name: protocol === "TCP" ? `listener-${port}` : `udp-${port}`,
      port,
      targetPort: port,
      protocol,
    })),
    // Deprecated, but what load balancers understand; there is no successor that all of them do.
    ...(address?.value !== undefined && { loadBalancerIP: address.value }),
  };
}

function workloadSpec(
  { owner, layers, settings }: DeployInput,
  kind: "Deployment" | "DaemonSet",
  config: string,
): JsonObject {
  // A new pod is ready before an old one stops.
  const rollingUpdate = { maxUnavailable: 0, maxSurge: 1 };
  const strategy = { type: "RollingUpdate", rollingUpdate };
  return {
    ...(kind === "Deployment" ? { strategy } : { updateStrategy: strategy }),
    selector: { matchLabels: selectorOf(owner.fleet) },
    template: podTemplate({
      owner,
      layers,
      settings,
      labels: labelsOf(owner),
      annotations: owner.gateway?.spec.infrastructure?.annotations ?? {},
      config,
    }),
  };
}

/** With several replicas, nodes may be drained one pod at a time. With one, a budget would only block the drain. */
function budgetOf({ spec }: Manifest): JsonObject | undefined {
  const { replicas, minReplicas } = spec as { readonly replicas?: number; readonly minReplicas?: number };
  return (replicas ?? minReplicas ?? 1) > 1 ? { maxUnavailable: 1 } : undefined;
}

/** By this the deployer recognizes changes that replace pods, even those that an earlier process applied. */
function withPodsDigest(workload: Manifest): Manifest {
  const { template } = workload.spec as { readonly template: unknown };
  const digest = createHash("sha256").update(JSON.stringify(template)).digest("hex").slice(0, 32);
  const { metadata } = workload;
  return { ...workload, metadata: { ...metadata, annotations: { ...metadata.annotations, [PODS]: digest } } };
}

function scaleTarget(name: string): JsonObject {
  return { apiVersion: apiVersionOf("Deployment"), kind: "Deployment", name };
}

/** Leaves the number of replicas to the autoscaler, which would otherwise be overridden with every apply. */
function withoutReplicas(deployment: Manifest): Manifest {
  const { replicas: _, ...spec } = deployment.spec as JsonObject;
  return { ...deployment, spec };
}

function withOverlays(manifest: Manifest, layers: readonly Parameters[]): Manifest {
  const { kind } = manifest;
  if (kind === "ConfigMap" || kind === "Secret") return manifest;
  return layers.reduce((merged, layer) => {
    const overlay = asJsonObject({ ...layer[OVERLAYS[kind]] });
    return strategicMerge(merged as unknown as JsonObject, overlay) as unknown as Manifest;
  }, manifest);
}
