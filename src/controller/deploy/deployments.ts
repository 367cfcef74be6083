/** What should run for each Gateway, and for each class whose Gateways share proxies, as a query over the objects of the cluster. */
import { objectKey } from "../../base/object-key.ts";
import { keyOfObject } from "../../kube/keys.ts";
import { type ParametersReference, TRACEGATE_GROUP } from "../../kube/objects.ts";
import { fleetOfClass } from "../../xds/resources.ts";
import type { Manifest } from "../base/manifest.ts";
import type { ControllerSettings } from "../base/settings.ts";
import { type Parameters, parseParameters } from "../crd/parameters.ts";
import { defineQuery, type Query, type Read } from "../graph/graph.ts";
import { gatewayModel } from "../translate/listeners/gateways.ts";
import {
  gatewaysOfClass,
  hasReadyProxy,
  isServedByShared,
  membersOfClass,
  ownFleet,
  sharedFleet,
} from "../translate/model/fleets.ts";
import type { GatewayModel } from "../translate/model/model.ts";
import { type GatewayPort, gatewayObjects, sessionSecret } from "./gateway-objects.ts";
import type { Owner } from "./owner.ts";

/** The result for the objects of one fleet. */
export interface FleetDeployment {
  /** Of the fleet. */
  readonly key: string;
  /**
   * `apply`: they are made what `objects` says, and others are deleted. `keep`: they stay as they are, because something is broken that they
   * depend on, or because others are to take over that are not ready yet. `remove`: others have taken over, or nothing needs them any more.
   */
  readonly action: "apply" | "keep" | "remove";
  readonly objects: readonly Manifest[];
  /** The Secret with the key of login cookies, which is made once and kept; without the key. Absent: nothing is applied. */
  readonly secret?: Manifest;
  /** Why nothing can be applied. */
  readonly problem?: string;
}

interface DeploymentContext {
  readonly settings: ControllerSettings;
  /** Of tracegate. */
  readonly version: string;
  /** PEM: what proxies trust as the controller; undefined until there is one. */
  readonly xdsCa: (read: Read) => string | undefined;
}

/** The query of all fleets; its key is empty. To be made once. A deployment that has not changed is the same object as before. */
export function deploymentsQuery(context: DeploymentContext): Query<readonly FleetDeployment[]> {
  const ofGateway = defineQuery("gatewayDeployment", (read, key) => deploymentOf(read, key, context));
  const ofClass = defineQuery("classDeployment", (read, name) => sharedDeployment(read, name, context));
  return defineQuery("deployments", (read) => {
    const gateways = read.list("Gateway");
    const own = gateways.map((gateway) => read.query(ofGateway, keyOfObject(gateway)));
    const named = gateways.map(({ spec }) => spec.gatewayClassName);
    const classes = new Set([...read.list("GatewayClass").map(keyOfObject), ...named]);
    return [...own.filter((each) => each !== undefined), ...[...classes].map((each) => read.query(ofClass, each))];
  });
}

function deploymentOf(read: Read, key: string, context: DeploymentContext): FleetDeployment | undefined {
  const gateway = read.get("Gateway", key);
  if (gateway === undefined) return undefined;
  const className = gateway.spec.gatewayClassName;
  const unchanged: FleetDeployment = { key, action: "keep", objects: [] };
  // What it owns goes with it.
  if (gateway.metadata.deletionTimestamp !== undefined) return unchanged;
  const gatewayClass = read.get("GatewayClass", className);
  // A class that is missing comes back, or it is deleted together with its Gateways.
  if (gatewayClass === undefined) return unchanged;
  if (gatewayClass.spec.controllerName !== context.settings.controllerName) return { ...unchanged, action: "remove" };
  if (read.query(sharedFleet, className) !== undefined)
    return { ...unchanged, action: read.query(isServedByShared, key) ? "remove" : "keep" };
  const own = gateway.spec.infrastructure?.parametersRef;
  const model = read.query(gatewayModel, key);
  return appliedOf(
    read,
    { fleet: ownFleet(key), className, gateway },
    [gatewayClass.spec.parametersRef, own && { ...own, namespace: gateway.metadata.namespace }],
    portsOf(model === undefined ? [] : [model]),
    context,
  );
}

/** Those that the Gateways of a class share, or have shared. */
function sharedDeployment(read: Read, className: string, context: DeploymentContext): FleetDeployment {
  const shared = read.query(sharedFleet, className);
  const unchanged: FleetDeployment = { key: fleetOfClass(className), action: "keep", objects: [] };
  const remove: FleetDeployment = { ...unchanged, action: "remove" };
  const gatewayClass = read.get("GatewayClass", className);
  // Gateways name it, so it comes back.
  if (gatewayClass === undefined) return unchanged;
  const { controllerName, parametersRef } = gatewayClass.spec;
  if (controllerName !== context.settings.controllerName) return remove;
  if (shared === undefined) {
    const isBroken = parametersRef !== undefined && parametersOf(read, parametersRef) === undefined;
    const waits = read.query(gatewaysOfClass, className).some((key) => !hasReadyProxy(read, ownFleet(key)));
    return isBroken || waits ? unchanged : remove;
  }
  const members = read.query(membersOfClass, className);
  if (members.length === 0) return remove;
  const models = members.flatMap((key) => read.query(gatewayModel, key) ?? []);
  return appliedOf(read, { fleet: shared, className }, [parametersRef], portsOf(models), context);
}

function appliedOf(
  read: Read,
  owner: Owner,
  references: readonly (ParametersReference | undefined)[],
  ports: readonly GatewayPort[],
  { settings, version, xdsCa }: DeploymentContext,
): FleetDeployment {
  const unchanged: FleetDeployment = { key: owner.fleet.key, action: "keep", objects: [] };
  const layers: Parameters[] = [];
  for (const reference of references) {
    if (reference === undefined) continue;
    const parameters = parametersOf(read, reference);
    if (parameters === undefined) return unchanged;
    layers.push(parameters);
  }
  const ca = settings.xds.mode === "tls" ? xdsCa(read) : undefined;
  if (settings.xds.mode === "tls" && ca === undefined)
    return { ...unchanged, problem: "the certificate of the controller is not ready yet" };
  const objects = gatewayObjects({ owner, ports, layers, settings, version, xdsCa: ca });
  return { ...unchanged, action: "apply", objects, secret: sessionSecret({ owner, settings, version }) };
}

/** undefined: missing or invalid, which the Gateway's or the class's status says. */
function parametersOf(read: Read, { group, kind, name, namespace = "" }: ParametersReference): Parameters | undefined {
  if (group !== TRACEGATE_GROUP || kind !== "TracegateParameters") return undefined;
  const parameters = read.get("TracegateParameters", objectKey({ namespace, name }));
  const parsed = parameters && parseParameters(parameters.spec);
  return parsed?.ok ? parsed.value : undefined;
}

/** Sorted, each once. Listeners that were not accepted, such as those with a reserved port, take none. */
function portsOf(models: readonly GatewayModel[]): readonly GatewayPort[] {
  const ports = new Map<string, GatewayPort>();
  for (const { port, protocol, accepted } of models.flatMap(({ listeners }) => listeners)) {
    const transport = protocol === "UDP" ? "UDP" : "TCP";
    if (accepted) ports.set(`${port}/${transport}`, { port, protocol: transport });
  }
  return [...ports.values()].sort((a, b) => a.port - b.port || (a.protocol < b.protocol ? -1 : 1));
}
