/** What the deployer writes to the cluster for a Gateway. */
import { createHash } from "node:crypto";
import type { Kind, OwnerReference } from "../../kube/objects.ts";
import { RESOURCES } from "../../kube/resources.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** An object as it is applied: only the fields that tracegate decides. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: OwnedKind;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
    /** Absent: Gateways share it. */
    readonly ownerReferences?: readonly OwnerReference[];
  };
  /** `spec`, `data` and what else the kind has. */
  readonly [field: string]: unknown;
}

/** The kinds that a Gateway owns. */
export const OWNED_KINDS = [
  "ServiceAccount",
  "ConfigMap",
  "Secret",
  "Service",
  "Deployment",
  "DaemonSet",
  "PodDisruptionBudget",
  "HorizontalPodAutoscaler",
] as const satisfies readonly Kind[];

export type OwnedKind = (typeof OWNED_KINDS)[number];

export function apiVersionOf(kind: OwnedKind): string {
  const { group, version } = RESOURCES[kind];
  return group === "" ? version : `${group}/${version}`;
}

/** Label of everything that tracegate owns in the cluster. */
export const MANAGED_BY = "app.kubernetes.io/managed-by";
export const MANAGER = "tracegate";
/** Annotation that names the controller that made an object: several tracegates in a cluster leave each other's alone. */
export const CONTROLLER = "tracegate.dev/controller";
/** Annotation of workloads: a digest of the pods that they request. */
export const PODS = "tracegate.dev/pods";
/** Annotation with the name of the GatewayClass whose Gateways share the object. */
export const SHARED_BY = "tracegate.dev/gateway-class";
/** Label of the pods that the Gateways of a class share, which selects them. */
export const OWNING_CLASS = "tracegate.dev/owning-gateway-class";
/** Label of the pods of a Gateway, which selects them (Gateway API, GatewayInfrastructure). */
export const GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name";
export const GATEWAY_CLASS_NAME = "gateway.networking.k8s.io/gateway-class-name";

/** Names of Services, and values of labels, have at most 63 characters. */
const MAX_NAME = 63;
const HASH_DIGITS = 12;

/** What a Service may be called (RFC 1035 label), while Gateways and classes may have dots, and a digit at the start. */
const SERVICE_NAME = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

/** `name`, or its first characters and a hash of all of it if it is too long. */
export function shortName(name: string, suffix = ""): string {
  return name.length + suffix.length <= MAX_NAME ? name + suffix : hashedName(name, name, suffix);
}

/** The first characters of `text`, and a hash of `name`. */
function hashedName(name: string, text: string, suffix: string): string {
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_DIGITS);
  return `${text.slice(0, MAX_NAME - HASH_DIGITS - 1 - suffix.length)}-${hash}${suffix}`;
}

/**
 * The name of the Deployment, Service and ServiceAccount of a Gateway. Also the value of the label `GATEWAY_NAME` on its pods, or, made of the name
 * of a class, of `OWNING_CLASS`.
 */
export function deploymentName(gatewayOrClass: string): string {
  if (SERVICE_NAME.test(gatewayOrClass)) return shortName(gatewayOrClass);
  return hashedName(gatewayOrClass, serviceText(gatewayOrClass), "");
}

/**
 * The same of a class whose Gateways share their proxies. It has a hash, because a Gateway in the same namespace may well have the name of the
 * class: neither could then be deployed while the other exists.
 */
export function sharedDeploymentName(gatewayClass: string): string {
  return hashedName(`GatewayClass/${gatewayClass}`, serviceText(gatewayClass), "");
}

function serviceText(name: string): string {
  return SERVICE_NAME.test(name) ? name : `gw-${name.replaceAll(".", "-")}`;
}
