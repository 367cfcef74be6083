import { keyOfObject } from "../../../kube/objects.ts";
import { defineQuery, type Read } from "../../graph.ts";
import { gatewayModel } from "../gateways.ts";
import { gatewayOfSet } from "../listener-sets.ts";
import { gatewaysOfRoute, gatewaysOfService } from "../service-routes.ts";
import { policyInput } from "./input.ts";
import { policyTarget, type ResolvedTarget, type TargetPlace, targetsOf } from "./targets.ts";

/** Keys of the Gateways of ours that what is attached to a target has an effect on. */
export function gatewaysOf(read: Read, target: TargetPlace): readonly string[] {
  if (target.kind !== "Service" && target.kind !== "TracegateBackend") return gatewaysAt(read, target);
  const callers = read.query(callersOf, policyTarget(target.kind, target.namespace, target.name));
  const gateways = callers.flatMap((caller) => {
    const input = read.query(policyInput, caller);
    return input === undefined ? [] : targetsOf(read, input).flatMap((each) => gatewaysAt(read, each));
  });
  return [...new Set([...gatewaysAt(read, target), ...gateways])].sort();
}

/** Keys of the policies that call a Service or TracegateBackend, such as an authorization service. Key: a `policyTarget`. */
const callersOf = defineQuery<readonly string[]>("callersOf", (read, target) =>
  read
    .list("TracegatePolicy")
    .map(keyOfObject)
    .filter((key) =>
      read
        .query(policyInput, key)
        ?.callees.some(({ kind, namespace, name }) => policyTarget(kind, namespace, name) === target),
    ),
);

/** Those that routes connect with the target. */
function gatewaysAt(read: Read, { kind, namespace, name, problem }: ResolvedTarget): readonly string[] {
  if (problem !== undefined) return [];
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
