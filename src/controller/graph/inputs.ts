import { nameOfKey } from "../../base/object-key.ts";
import type { KubeObject, Objects, Secret } from "../../kube/objects.ts";
import type { CertificateAndKey } from "../../tls/tls-settings.ts";
import type { Resource } from "../../translation/resources/store.ts";
import type { HeldBack } from "../../xds/resources.ts";

/** Everything that queries may read: objects of the cluster, and what the controller learns elsewhere and sets like objects. */
export interface Inputs extends Objects {
  readonly ProxyReport: ProxyReport;
  readonly DeploymentReport: DeploymentReport;
  readonly ControllerIdentity: ControllerIdentity;
  readonly StreamAuthority: StreamAuthority;
  readonly FetchedDocument: FetchedDocument;
  readonly FormerCertificate: FormerCertificate;
  readonly Clock: Clock;
  readonly HostRules: HostRules;
}

export type InputKind = keyof Inputs;

/**
 * What the proxies of one fleet say about the state that they were sent. Its key is that of the fleet. Absent while all proxies accept
 * everything, unless Gateways share them.
 */
export interface ProxyReport extends KubeObject {
  readonly kind: "ProxyReport";
  /** Sorted by pod. */
  readonly rejections: readonly Rejection[];
  /** Of a shared fleet: keys of the Gateways that every proxy serves that is connected to this replica of the controller. Absent: none is. */
  readonly serving?: readonly string[];
}

/** A proxy rejected an update (NACK) and runs on its last good state. */
export interface Rejection {
  /** Name of the pod. */
  readonly pod: string;
  /** The proxy's message. */
  readonly message: string;
  /** The Gateways that it is about, if the proxy runs the rest of the state; empty: it runs none of it. */
  readonly heldBack: readonly HeldBack[];
}

/** `fleet`: its key. */
export function proxyReport(fleet: string, rejections: readonly Rejection[], serving?: readonly string[]): ProxyReport {
  const report = { apiVersion: "", kind: "ProxyReport", metadata: nameOfKey(fleet), rejections } as const;
  return serving === undefined ? report : { ...report, serving };
}

/** Why the objects of one fleet could not be deployed. Its key is that of the fleet. Absent while deployment succeeds. */
interface DeploymentReport extends KubeObject {
  readonly kind: "DeploymentReport";
  readonly error: string;
}

/** `fleet`: its key. */
export function deploymentReport(fleet: string, error: string): DeploymentReport {
  return { apiVersion: "", kind: "DeploymentReport", metadata: nameOfKey(fleet), error };
}

/** `TRACEGATE_CONTROLLER_NAME`. There is one, named `controller`; without it the name is `CONTROLLER_NAME`. */
interface ControllerIdentity extends KubeObject {
  readonly kind: "ControllerIdentity";
  readonly controllerName: string;
}

export function controllerIdentity(controllerName: string): ControllerIdentity {
  const metadata = { namespace: "", name: "controller" };
  return { apiVersion: "", kind: "ControllerIdentity", metadata, controllerName };
}

/** A document behind a URL that policies name, such as a key set. Its name is the URL; absent: not fetched yet. */
export interface FetchedDocument extends KubeObject {
  readonly kind: "FetchedDocument";
  readonly document: Resource;
}

/**
 * The certificate that stays in use although its Secret has changed, because what the Secret holds now cannot be used or has
 * expired. Its namespace and name are those of the Secret. Absent: the Secret decides.
 */
interface FormerCertificate extends KubeObject {
  readonly kind: "FormerCertificate";
  readonly certificate: CertificateAndKey;
}

export function formerCertificate(secret: Secret, certificate: CertificateAndKey): FormerCertificate {
  const { namespace, name } = secret.metadata;
  return { apiVersion: "", kind: "FormerCertificate", metadata: { namespace, name }, certificate };
}

/** The current time, which decides what has expired. There is one, named `controller`; without it nothing has expired. */
interface Clock extends KubeObject {
  readonly kind: "Clock";
  /** Milliseconds since 1970, as of the last tick. */
  readonly now: number;
}

export function clock(now: number): Clock {
  return { apiVersion: "", kind: "Clock", metadata: { namespace: "", name: "controller" }, now };
}

/** The operator's rules for hosts. There is one object, named `controller`; default: `DEFAULT_HOST_RULES`. */
interface HostRules extends KubeObject {
  readonly kind: "HostRules";
  /** Objects may name hosts inside the cluster. */
  readonly allowClusterHosts: boolean;
  /** Of the cluster's DNS, such as `cluster.local`. */
  readonly domains: readonly string[];
  /** CIDR. Hosts must not be inside. */
  readonly denyNetworks: readonly string[];
}

export function hostRules(rules: Pick<HostRules, "allowClusterHosts" | "domains" | "denyNetworks">): HostRules {
  return { apiVersion: "", kind: "HostRules", metadata: { namespace: "", name: "controller" }, ...rules };
}

export const DEFAULT_HOST_RULES = hostRules({
  allowClusterHosts: false,
  domains: ["cluster.local", "clusterset.local"],
  denyNetworks: [],
});

/** The CA that proxies verify the controller with. There is one, named `controller`, once the stream has a certificate. */
interface StreamAuthority extends KubeObject {
  readonly kind: "StreamAuthority";
  /** PEM */
  readonly ca: string;
}

export function streamAuthority(ca: string): StreamAuthority {
  return { apiVersion: "", kind: "StreamAuthority", metadata: { namespace: "", name: "controller" }, ca };
}

export const CONTROLLER_NAME = "tracegate.dev/gateway-controller";
