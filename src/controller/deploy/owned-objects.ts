import { createHash } from "node:crypto";
import { refKey } from "../../kube/keys.ts";
import type { DaemonSet, Deployment, KubeObject, ObjectMeta } from "../../kube/objects.ts";
import { fleetOfClass } from "../../xds/resources.ts";
import { type OwnedKind, PODS, SHARED_BY } from "../base/manifest.ts";

/** What the deployer keeps of an object in the cluster that tracegate made. */
export interface OwnedObject {
  readonly kind: OwnedKind;
  readonly metadata: Pick<ObjectMeta, "name" | "namespace" | "uid" | "resourceVersion">;
  /** Key of the fleet that it belongs to. */
  readonly fleet: string | undefined;
  /** Changes with everything but the status. */
  readonly fingerprint: string;
  /** For workloads: pods of its latest version are available. */
  readonly available: boolean;
  /** For workloads: all pods are of its latest version and available. */
  readonly rolledOut: boolean;
  /** For workloads: identifies the requested pods; undefined: the object was made by a version of tracegate without this annotation. */
  readonly pods: string | undefined;
}

/** Identifies an object among all that are owned: `<kind>/<namespace>/<name>`. */
export function ownedId({ kind, metadata }: { readonly kind: string; readonly metadata: ObjectName }): string {
  return refKey({ kind, ...metadata });
}

type ObjectName = Pick<ObjectMeta, "name" | "namespace">;

export function ownedObject(kind: OwnedKind, object: KubeObject): OwnedObject {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  return {
    kind,
    metadata: {
      name,
      namespace,
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    fleet: fleetOfObject(object.metadata),
    fingerprint: fingerprintOf(object),
    available: isAvailable(object as Deployment | DaemonSet),
    rolledOut: isRolledOut(object as Deployment | DaemonSet),
    pods: object.metadata.annotations?.[PODS],
  };
}

/** Key of the fleet that an object runs, by the Gateway that owns it or the class that shares it; undefined: neither. */
export function fleetOfObject({ namespace, ownerReferences, annotations }: ObjectMeta): string | undefined {
  const owner = ownerReferences?.find(({ controller }) => controller === true);
  if (owner !== undefined) return owner.kind === "Gateway" ? `${namespace}/${owner.name}` : undefined;
  const gatewayClass = annotations?.[SHARED_BY];
  return gatewayClass === undefined ? undefined : fleetOfClass(gatewayClass);
}

/** Annotations that others keep for themselves: the Deployment controller counts its rollouts, kubectl remembers what it applied. */
const BOOKKEEPING = ["deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"];

/** Two versions of an object with the same fingerprint differ at most in status and bookkeeping. */
function fingerprintOf(object: KubeObject): string {
  const { apiVersion: _version, kind: _kind, metadata, ...rest } = object;
  const { status: _status, ...content } = rest as { readonly status?: unknown };
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) => !BOOKKEEPING.includes(name));
  const compared = [metadata.labels ?? {}, annotations, metadata.ownerReferences ?? [], content];
  return createHash("sha1").update(JSON.stringify(compared)).digest("base64");
}

/** By the criteria of `kubectl rollout status`. */
function isRolledOut(workload: Deployment | DaemonSet): boolean {
  const { metadata, status = {} } = workload;
  if ((status.observedGeneration ?? -1) < (metadata.generation ?? 0)) return false;
  if (workload.kind === "DaemonSet") {
    const { desiredNumberScheduled = 0, updatedNumberScheduled = 0, numberAvailable = 0 } = workload.status ?? {};
    return updatedNumberScheduled >= desiredNumberScheduled && numberAvailable >= desiredNumberScheduled;
  }
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = workload.status ?? {};
  return (
    updatedReplicas >= (workload.spec?.replicas ?? 1) &&
    replicas <= updatedReplicas &&
    availableReplicas >= updatedReplicas
  );
}

function isAvailable(workload: Deployment | DaemonSet): boolean {
  const { generation = 0 } = workload.metadata;
  const { observedGeneration = -1, ...status } = workload.status ?? {};
  const pods =
    "numberAvailable" in status ? status.numberAvailable : "availableReplicas" in status ? status.availableReplicas : 0;
  return observedGeneration >= generation && (pods ?? 0) > 0;
}
