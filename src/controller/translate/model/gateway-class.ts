/** Which GatewayClasses and Gateways are ours. */
import type { Gateway, GatewayClass } from "../../../kube/objects.ts";
import type { Read } from "../../graph/graph.ts";
import { CONTROLLER_NAME } from "../../graph/inputs.ts";

/** `TRACEGATE_CONTROLLER_NAME`, by which classes choose their controller. */
export function controllerName(read: Read): string {
  return read.get("ControllerIdentity", "controller")?.controllerName ?? CONTROLLER_NAME;
}

/** The class of a Gateway, if it is one of ours. */
export function ourClass(read: Read, { spec }: Gateway): GatewayClass | undefined {
  const found = read.get("GatewayClass", spec.gatewayClassName);
  return found?.spec.controllerName === controllerName(read) ? found : undefined;
}
