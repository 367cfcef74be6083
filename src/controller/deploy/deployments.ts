/** What should run for each Gateway, as a query over the objects of the cluster. */
import { objectKey } from "../../base/object-key.ts";
import { keyOfObject } from "../../kube/keys.ts";
import { type Gateway, type ParametersReference, TRACEGATE_GROUP } from "../../kube/objects.ts";
import type { Manifest } from "../base/manifest.ts";
import type { ControllerSettings } from "../base/settings.ts";
import { type Parameters, parseParameters } from "../crd/parameters.ts";
import { defineQuery, type Query, type Read } from "../graph/graph.ts";
import { gatewayModel } from "../translate/listeners/gateways.ts";
import type { GatewayModel } from "../translate/model/model.ts";
import { type GatewayPort, gatewayObjects } from "./gateway-objects.ts";

/** The result for the objects of one Gateway. */
export interface GatewayDeployment {
  /** `<namespace>/<name>` */
  readonly key: string;
  readonly gateway: Gateway;
  /**
   * `apply`: they are made what `objects` says, and others are deleted. `keep`: they stay as they are, because something is
   * broken that they depend on. `remove`: another controller is responsible for the Gateway now.
   */
  readonly action: "apply" | "keep" | "remove";
  readonly objects: readonly Manifest[];
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

/** The query of all Gateways; its key is empty. To be made once. A deployment that has not changed is the same object as before. */
export function deploymentsQuery(context: DeploymentContext): Query<readonly GatewayDeployment[]> {
  const deployment = defineQuery("gatewayDeployment", (read, key) => deploymentOf(read, key, context));
  return defineQuery("gatewayDeployments", (read) =>
    read
      .list("Gateway")
      .map((gateway) => read.query(deployment, keyOfObject(gateway)))
      .filter((each) => each !== undefined),
  );
}

function deploymentOf(
  read: Read,
  key: string,
  { settings, version, xdsCa }: DeploymentContext,
): GatewayDeployment | undefined {
  const gateway = read.get("Gateway", key);
  if (gateway === undefined) return undefined;
  const unchanged: GatewayDeployment = { key, gateway: identityOf(gateway), action: "keep", objects: [] };
  // What it owns goes with it.
  if (gateway.metadata.deletionTimestamp !== undefined) return unchanged;
  const gatewayClass = read.get("GatewayClass", gateway.spec.gatewayClassName);
  // A class that is missing comes back, or it is deleted together with its Gateways.
  if (gatewayClass === undefined) return unchanged;
  if (gatewayClass.spec.controllerName !== settings.controllerName) return { ...unchanged, action: "remove" };
  const model = read.query(gatewayModel, key);
  const layers: Parameters[] = [];
  const { namespace } = gateway.metadata;
  const own = gateway.spec.infrastructure?.parametersRef;
  for (const reference of [gatewayClass.spec.parametersRef, own && { ...own, namespace }]) {
    if (reference === undefined) continue;
    const parameters = parametersOf(read, reference);
    if (parameters === undefined) return unchanged;
    layers.push(parameters);
  }
  const ca = settings.xds.mode === "tls" ? xdsCa(read) : undefined;
  if (settings.xds.mode === "tls" && ca === undefined)
    return { ...unchanged, problem: "the certificate of the controller is not ready yet" };
  const ports = model === undefined ? [] : portsOf(model);
  const objects = gatewayObjects({ gateway, ports, layers, settings, version, xdsCa: ca });
  return { ...unchanged, action: "apply", objects };
}

/** Only what the deployer needs, so that other changes do not count. */
function identityOf({ apiVersion, kind, metadata, spec }: Gateway): Gateway {
  const { name, namespace, uid } = metadata;
  const { gatewayClassName, infrastructure } = spec;
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, ...(uid !== undefined && { uid }) },
    spec: { gatewayClassName, ...(infrastructure !== undefined && { infrastructure }) },
  };
}

/** undefined: missing or invalid, which the Gateway's or the class's status says. */
function parametersOf(read: Read, { group, kind, name, namespace = "" }: ParametersReference): Parameters | undefined {
  if (group !== TRACEGATE_GROUP || kind !== "TracegateParameters") return undefined;
  const parameters = read.get("TracegateParameters", objectKey({ namespace, name }));
  const parsed = parameters && parseParameters(parameters.spec);
  return parsed?.ok ? parsed.value : undefined;
}

/** Sorted, each once. Listeners that were not accepted, such as those with a reserved port, take none. */
function portsOf({ listeners }: GatewayModel): readonly GatewayPort[] {
  const ports = new Map<string, GatewayPort>();
  for (const { port, protocol, accepted } of listeners) {
    const transport = protocol === "UDP" ? "UDP" : "TCP";
    if (accepted) ports.set(`${port}/${transport}`, { port, protocol: transport });
  }
  return [...ports.values()].sort((a, b) => a.port - b.port || (a.protocol < b.protocol ? -1 : 1));
}
