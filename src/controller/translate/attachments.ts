/** Which Gateways policies have an effect on: those that their targets belong to, or that use them. */
import { keyOfObject, refKey } from "../../kube/keys.ts";
import { defineQuery, type Read } from "../graph/graph.ts";
import { gatewayModel } from "./listeners/gateways.ts";
import { gatewayOfSet } from "./listeners/listener-sets.ts";
import { policyInput } from "./policy/input.ts";
import { type ResolvedTarget, type TargetRef, targetsOf } from "./policy/targets.ts";
import { filterUses } from "./routes/filter-uses.ts";
import { gatewaysOfRoute, gatewaysOfService } from "./routes/service-routes.ts";

/** A target of a policy, with the keys of the Gateways of ours that it belongs to or is used by. */
interface PolicyAttachment {
  readonly target: ResolvedTarget;
  readonly gateways: readonly string[];
}

/** Key: `<namespace>/<name>` of a policy. */
export const policyAttachments = defineQuery<readonly PolicyAttachment[]>("policyAttachments", (read, key) => {
  const input = read.query(policyInput, key);
  if (input === undefined) return [];
  return targetsOf(read, input).map((target) => ({
    target,
    gateways: target.problem === undefined ? gatewaysOf(read, target) : [],
  }));
});

/** Keys of the policies that have an effect on a Gateway (`<namespace>/<name>`). */
export const policiesOfGateway = defineQuery<readonly string[]>("policiesOfGateway", (read, gateway) =>
  read
    .list("TracegatePolicy")
    .map(keyOfObject)
    .filter((key) => read.query(policyAttachments, key).some(({ gateways }) => gateways.includes(gateway))),
);

/** Keys of the Gateways of ours that what is attached to a target has an effect on. */
function gatewaysOf(read: Read, target: TargetRef): readonly string[] {
  if (target.kind !== "Service" && target.kind !== "TracegateBackend") return gatewaysAt(read, target);
  const callers = read.query(callersOf, refKey({ ...target, section: undefined }));
  const gateways = callers.flatMap((caller) => {
    const input = read.query(policyInput, caller);
    const attached = input === undefined ? [] : targetsOf(read, input).flatMap((each) => gatewaysAt(read, each));
    return [...attached, ...read.query(filterUses, caller).flatMap((use) => use.gateways)];
  });
  return [...new Set([...gatewaysAt(read, target), ...gateways])].sort();
}

/** Keys of the policies that call a Service or TracegateBackend, such as an authorization service. Key: a `refKey`. */
const callersOf = defineQuery<readonly string[]>("callersOf", (read, target) =>
  read
    .list("TracegatePolicy")
    .map(keyOfObject)
    .filter((key) =>
      read
        .query(policyInput, key)
        ?.callees.some(({ kind, namespace, name }) => refKey({ kind, namespace, name }) === target),
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
    case "ServiceImport":
    case "TracegateBackend":
      return read.query(gatewaysOfService, `${kind}/${key}`);
    default:
      return [...new Set(read.query(gatewaysOfRoute, refKey({ kind, namespace, name })))].sort();
  }
}
