import { createHash } from "node:crypto";
import type { Gateway } from "../../kube/objects.ts";
import {
  apiVersionOf,
  CONTROLLER,
  deploymentName,
  GATEWAY_CLASS_NAME,
  type JsonObject,
  MANAGED_BY,
  MANAGER,
  type Manifest,
  type OwnedKind,
  PODS,
  shortName,
} from "../base/manifest.ts";
import type { ControllerSettings } from "../base/settings.ts";
import type { Parameters } from "../crd/parameters.ts";
import { strategicMerge } from "./merge.ts";
import { asJsonObject, lastOf, OVERLAYS } from "./parameters.ts";
import { CA_KEY, caConfigMapName, podTemplate, proxyConfig, selectorOf } from "./workload.ts";

/** A port that proxies of a Gateway listen on. */
export interface GatewayPort {
  readonly port: number;
  readonly protocol: "TCP" | "UDP";
}

interface DeployInput {
  readonly gateway: Gateway;
  /** Distinct, in order. */
  readonly ports: readonly GatewayPort[];
  /** Of the class and of the Gateway, in this order: later ones win. */
  readonly layers: readonly Parameters[];
  readonly settings: ControllerSettings;
  /** Version of tracegate. */
  readonly version: string;
  /** PEM: what proxies trust as the controller; needed if the stream has TLS. */
  readonly xdsCa: string | undefined;
}

/** A Service must have a port, so that of a Gateway without listeners has one on which nothing listens. */
const NO_LISTENERS: readonly GatewayPort[] = [{ port: 443, protocol: "TCP" }];

/**
 * The objects that run the proxies of a Gateway (docs/kubernetes.md#what-runs-where), in the order in which they are to be
 * applied, except for the Secret with the key of login cookies, which is made once and kept.
 */
export function gatewayObjects(input: DeployInput): Manifest[] {
  const { gateway, layers, settings, xdsCa } = input;
  const config = proxyConfig(layers, settings.proxy.admin);
  const name = deploymentName(gateway.metadata.name);
  const workload = lastOf(layers, (layer) => layer.workload?.kind) ?? "Deployment";
  const make = (kind: OwnedKind, fields: JsonObject, named = name): Manifest =>
    withOverlays(manifest(input, kind, named, fields), layers);
  const wanted = (kind: keyof typeof OVERLAYS): boolean => layers.some((layer) => layer[OVERLAYS[kind]] !== undefined);
  const selector = { matchLabels: selectorOf(gateway.metadata.name) };
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
      ? [make("ConfigMap", { data: { [CA_KEY]: xdsCa ?? "" } }, caConfigMapName(gateway.metadata.name))]
      : []),
    make("Service", { spec: serviceSpec(input) }),
    withPodsDigest(scaled ? withoutReplicas(pods) : pods),
    ...(budget === undefined ? [] : [make("PodDisruptionBudget", { spec: { selector, ...budget } })]),
    ...(autoscaler === undefined ? [] : [autoscaler]),
  ];
}

/** Metadata of everything that a Gateway owns, for `gatewayObjects` and for its Secret. */
export function manifest(
  { gateway, version, settings }: Pick<DeployInput, "gateway" | "version" | "settings">,
  kind: OwnedKind,
  name: string,
  fields: JsonObject,
): Manifest {
  const { metadata, spec, apiVersion } = gateway;
  return {
    apiVersion: apiVersionOf(kind),
    kind,
    metadata: {
      name,
      namespace: metadata.namespace,
      labels: { ...labelsOf(gateway), "app.kubernetes.io/version": labelValue(version) },
      annotations: { ...spec.infrastructure?.annotations, [CONTROLLER]: settings.controllerName },
      // Without blockOwnerDeletion, which some clusters only grant to those who may change finalizers of Gateways.
      ownerReferences: [
        { apiVersion, kind: gateway.kind, name: metadata.name, uid: metadata.uid ?? "", controller: true },
      ],
    },
    ...fields,
  };
}

/** Also of the pods, except the version of the controller: an upgrade that leaves the image alone must not replace them. */
function labelsOf({ metadata, spec }: Gateway): Readonly<Record<string, string>> {
  const name = deploymentName(metadata.name);
  return {
    ...spec.infrastructure?.labels,
    "app.kubernetes.io/name": name,
    "app.kubernetes.io/instance": name,
    [MANAGED_BY]: MANAGER,
    [GATEWAY_CLASS_NAME]: shortName(spec.gatewayClassName),
    ...selectorOf(metadata.name),
  };
}

function labelValue(text: string): string {
  return text.replace(/[^\w.-]/g, "-").slice(0, 63);
}

function serviceSpec({ gateway, ports }: DeployInput): JsonObject {
  // A Service has one; the Gateway is not programmed before it has all that it asks for.
  const address = gateway.spec.addresses?.find(
    ({ type = "IPAddress", value = "" }) => type === "IPAddress" && value !== "",
  );
  return {
    type: "LoadBalancer",
    selector: selectorOf(gateway.metadata.name),
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
  { gateway, layers, settings }: DeployInput,
  kind: "Deployment" | "DaemonSet",
  config: string,
): JsonObject {
  const name = gateway.metadata.name;
  // A new pod is ready before an old one stops.
  const rollingUpdate = { maxUnavailable: 0, maxSurge: 1 };
  const strategy = { type: "RollingUpdate", rollingUpdate };
  return {
    ...(kind === "Deployment" ? { strategy } : { updateStrategy: strategy }),
    selector: { matchLabels: selectorOf(name) },
    template: podTemplate({
      gateway: name,
      layers,
      settings,
      labels: labelsOf(gateway),
      annotations: gateway.spec.infrastructure?.annotations ?? {},
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
