/**
 * Which proxies serve a Gateway (decision 81): its own, or those that the Gateways of its class share, which the parameters of the class
 * ask for. Whoever may write Gateways can name any class, so the parameters also say whose Gateways may join.
 */
import { fieldsOf } from "../../../base/fields.ts";
import { nameOfKey, objectKey } from "../../../base/object-key.ts";
import { keyOfObject } from "../../../kube/keys.ts";
import { type Gateway, type NamespacesFrom, type Pod, TRACEGATE_GROUP } from "../../../kube/objects.ts";
import { classOfFleet, fleetOfClass } from "../../../xds/resources.ts";
import { deploymentName, GATEWAY_NAME, OWNING_CLASS, sharedDeploymentName } from "../../base/manifest.ts";
import { type MergeGateways, parseMergeGateways } from "../../crd/parameters.ts";
import { defineIndex, defineQuery, type Graph, type Read } from "../../graph/graph.ts";
import { controllerName, ourClass } from "./gateway-class.ts";
import type { Problem } from "./model.ts";
import { isFromAllowed } from "./namespaces.ts";

/** Proxies that run one state. */
export interface Fleet {
  /** `<namespace>/<name>` of their Gateway, or `fleetOfClass`. */
  readonly key: string;
  /** Of the pods and everything else that runs them. */
  readonly namespace: string;
  /** Of the Deployment, the Service and the ServiceAccount. */
  readonly name: string;
  /** On the pods. No other pods of the namespace have it with this value. */
  readonly label: { readonly name: typeof GATEWAY_NAME | typeof OWNING_CLASS; readonly value: string };
}

/** The proxies that a Gateway has for itself. Key: `<namespace>/<name>` of the Gateway, which need not exist. */
export function ownFleet(gateway: string): Fleet {
  const { namespace, name } = nameOfKey(gateway);
  const deployment = deploymentName(name);
  return { key: gateway, namespace, name: deployment, label: { name: GATEWAY_NAME, value: deployment } };
}

/** The proxies that the Gateways of a class of ours share; undefined: each has its own. Key: name of the class. */
export const sharedFleet = defineQuery<Fleet | undefined>("sharedFleet", (read, name) => {
  const parameters = read.query(mergingParameters, name);
  if (parameters === undefined) return undefined;
  return sharedFleetIn(nameOfKey(parameters.key).namespace, name);
});

/** As they are in the namespace of the parameters. */
export function sharedFleetIn(namespace: string, gatewayClass: string): Fleet {
  return {
    key: fleetOfClass(gatewayClass),
    namespace,
    name: sharedDeploymentName(gatewayClass),
    label: { name: OWNING_CLASS, value: deploymentName(gatewayClass) },
  };
}

/** The TracegateParameters by which a class of ours merges its Gateways. Key: name of the class. */
export const mergingParameters = defineQuery<MergingParameters | undefined>("mergingParameters", (read, name) => {
  const key = parametersOfClass(read, name);
  if (key === undefined) return undefined;
  const merge = parseMergeGateways(read.get("TracegateParameters", key)?.spec);
  return merge && { ...merge, key, namespaces: merge.namespaces as NamespacesFrom };
});

/** Key of the TracegateParameters that a class of ours refers to, whether or not they exist. */
function parametersOfClass(read: Read, name: string): string | undefined {
  const { controllerName: controller, parametersRef } = read.get("GatewayClass", name)?.spec ?? {};
  if (controller !== controllerName(read) || parametersRef?.namespace === undefined) return undefined;
  const { group, kind } = parametersRef;
  return group === TRACEGATE_GROUP && kind === "TracegateParameters" ? objectKey(parametersRef) : undefined;
}

/**
 * Whether shared proxies of a class run, but its parameters are missing or their `mergeGateways` is invalid. Statuses wait then like
 * everything else: without their reservations, listeners could lose their hosts to older Gateways. Key: name of the class.
 */
export const isSharingUnknown = defineQuery<boolean>("isSharingUnknown", (read, name) => {
  const key = parametersOfClass(read, name);
  if (key === undefined || read.query(mergingParameters, name) !== undefined) return false;
  const parameters = read.get("TracegateParameters", key);
  const isUnknown = parameters === undefined || "mergeGateways" in fieldsOf(parameters.spec);
  return isUnknown && hasProxy(read, sharedFleetIn(nameOfKey(key).namespace, name));
});

interface MergingParameters extends Pick<MergeGateways, "frontend"> {
  /** `<namespace>/<name>` */
  readonly key: string;
  /** Whose Gateways may share the proxies. */
  readonly namespaces: NamespacesFrom;
}

/** The ServiceAccount of the proxies of a fleet, by its key; undefined: there is no such fleet. */
export function accountOf(
  graph: Pick<Graph, "query">,
  key: string,
): { readonly namespace: string; readonly serviceAccount: string } | undefined {
  const gatewayClass = classOfFleet(key);
  const fleet = gatewayClass === undefined ? ownFleet(key) : graph.query(sharedFleet, gatewayClass);
  return fleet && { namespace: fleet.namespace, serviceAccount: fleet.name };
}

/** Why a Gateway cannot share the proxies of its class, if the class merges its Gateways. */
export function mergeProblem(read: Read, { metadata, spec }: Gateway): Problem | undefined {
  const gatewayClass = spec.gatewayClassName;
  const parameters = read.query(mergingParameters, gatewayClass);
  if (parameters === undefined) return undefined;
  const { labels = {}, annotations = {}, parametersRef } = spec.infrastructure ?? {};
  const shared = `Gateways of class ${gatewayClass} share their proxies`;
  if (!isFromAllowed(read, parameters.namespaces, nameOfKey(parameters.key).namespace, metadata.namespace))
    return {
      reason: "NotAllowed",
      message: `${shared}, and mergeGateways.namespaces of TracegateParameters ${parameters.key} does not admit namespace ${metadata.namespace}`,
    };
  if (parametersRef !== undefined)
    return {
      reason: "InvalidParameters",
      message: `${shared}, which spec.infrastructure.parametersRef cannot change; remove it, or choose another class`,
    };
  if (Object.keys({ ...labels, ...annotations }).length > 0)
    return {
      reason: "InvalidParameters",
      message: `${shared}, so spec.infrastructure can set no labels and annotations; remove them, or choose another class`,
    };
  return undefined;
}

const BY_CLASS = defineIndex("Gateway", ({ spec }) => (spec === null ? [] : [spec.gatewayClassName]));

/** Keys of the Gateways that name a class, sorted. Key: name of the class. */
export const gatewaysOfClass = defineQuery<readonly string[]>("gatewaysOfClass", (read, name) =>
  read.find(BY_CLASS, name).map(keyOfObject),
);

/** Keys of the Gateways that share the proxies of a class, sorted. Key: name of the class. */
export const membersOfClass = defineQuery<readonly string[]>("membersOfClass", (read, name) =>
  read.query(sharedFleet, name) === undefined
    ? []
    : read
        .find(BY_CLASS, name)
        .flatMap((gateway) => (mergeProblem(read, gateway) === undefined ? keyOfObject(gateway) : [])),
);

/** The fleet that is to serve a Gateway. Key: `<namespace>/<name>` of the Gateway. */
export const fleetOf = defineQuery<Fleet>("fleetOf", (read, key) => {
  const gateway = read.get("Gateway", key);
  if (gateway === undefined || ourClass(read, gateway) === undefined) return ownFleet(key);
  const shared =
    mergeProblem(read, gateway) === undefined ? read.query(sharedFleet, gateway.spec.gatewayClassName) : undefined;
  return shared ?? ownFleet(key);
});

/**
 * The fleets that are sent the state of a Gateway: the one that is to serve it and, until these are gone, proxies of its own from before its
 * class merged its Gateways. Key: `<namespace>/<name>` of the Gateway.
 */
export const fleetsOf = defineQuery<readonly Fleet[]>("fleetsOf", (read, key) => {
  const [wanted, own] = [read.query(fleetOf, key), ownFleet(key)];
  return wanted.key !== own.key && hasProxy(read, own) ? [wanted, own] : [wanted];
});

/** Whether shared proxies serve a Gateway: one of them is ready, and they have acknowledged a state with it. Key: that of the Gateway. */
export const isServedByShared = defineQuery<boolean>("isServedByShared", (read, key) => {
  const fleet = read.query(fleetOf, key);
  return fleet.key !== key && hasReadyProxy(read, fleet) && hasAcknowledged(read, fleet, key);
});

/**
 * Whether the proxies that Gateways share have acknowledged a state with a Gateway. Those that are connected to other replicas of the controller
 * are not known here, and a Gateway's own proxies are not ready before.
 */
export function hasAcknowledged(read: Read, fleet: Fleet, gateway: string): boolean {
  const { serving } = read.get("ProxyReport", fleet.key) ?? {};
  return serving === undefined || serving.includes(gateway);
}

/** Pods of proxies by `podsKey`. */
const PROXIES = defineIndex("Pod", ({ metadata: { namespace, labels = {} } }) =>
  ([GATEWAY_NAME, OWNING_CLASS] as const).flatMap((name) => {
    const value = labels[name];
    return value === undefined ? [] : [podsKey({ namespace, label: { name, value } })];
  }),
);

function podsKey({ namespace, label: { name, value } }: Pick<Fleet, "namespace" | "label">): string {
  return `${name} ${namespace}/${value}`;
}

/** The pods of a fleet. */
export function podsOf(read: Read, fleet: Fleet): readonly Pod[] {
  return read.find(PROXIES, podsKey(fleet));
}

/** Whether a fleet has any pods, ready or not. */
export function hasProxy(read: Read, fleet: Fleet): boolean {
  return read.query(someProxy, podsKey(fleet));
}

/** Whether a pod of a fleet is ready. */
export function hasReadyProxy(read: Read, fleet: Fleet): boolean {
  return read.query(someReadyProxy, podsKey(fleet));
}

// Separate queries: pods report their state all the time.
const someProxy = defineQuery<boolean>("someProxy", (read, pods) => read.find(PROXIES, pods).length > 0);
const someReadyProxy = defineQuery<boolean>("someReadyProxy", (read, pods) =>
  read
    .find(PROXIES, pods)
    .some(({ status }) => status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True")),
);
