import { keyOfObject } from "../../../kube/objects.ts";
import { defineQuery } from "../../graph.ts";
import { gatewaysOf } from "./ancestors.ts";
import { policyInput } from "./input.ts";
import { type ResolvedTarget, targetsOf } from "./targets.ts";

/** A target of a policy, with the keys of the Gateways of ours that it belongs to or is used by. */
export interface PolicyAttachment {
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
