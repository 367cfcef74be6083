import type { Read } from "../../graph.ts";
import { gatewayModel } from "../gateways.ts";
import { gatewayOfSet } from "../listener-sets.ts";
import { gatewaysOfRoute, gatewaysOfService } from "../service-routes.ts";
import { policyTarget, type TargetPlace } from "./targets.ts";

/** Keys of the Gateways of ours that what is attached to a target has an effect on. */
export function gatewaysOf(read: Read, { kind, namespace, name }: TargetPlace): readonly string[] {
  const key = `${namespace}/${name}`;
  switch (kind) {
    case "Gateway":
      return read.query(gatewayModel, key) === undefined ? [] : [key];
    case "ListenerSet": {
      const gateway = read.query(gatewayOfSet, key);
      const model = gateway === undefined ? undefined : read.query(gatewayModel, gateway);
      return model?.listenerSets.includes(key) === true ? [model.key] : [];
    }
    case "Service":
      return read.query(gatewaysOfService, key);
    case "TracegateBackend":
      return read.query(gatewaysOfService, `${kind}/${key}`);
    default:
      return [...new Set(read.query(gatewaysOfRoute, policyTarget(kind, namespace, name)))].sort();
  }
}
