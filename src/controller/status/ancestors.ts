import { keyOfObject } from "../../kube/keys.ts";
import type { Kind, KubeObject, PolicyAncestorStatus } from "../../kube/objects.ts";
import type { Read } from "../graph/graph.ts";
import { controllerName } from "../translate/model/gateway-class.ts";
import type { ConditionDraft } from "../translate/model/model.ts";
import { type DesiredStatus, gatewayReferences } from "./desired.ts";

interface SharedPolicy extends KubeObject {
  readonly kind: Kind;
  readonly status?: { readonly ancestors?: readonly PolicyAncestorStatus[] };
}

/**
 * The status of a policy of the Gateway API at the Gateways of ours (`<namespace>/<name>`) that it concerns. undefined: there is no
 * such Gateway and was none, so the policy is a matter of other controllers.
 */
export function ancestorStatus(
  read: Read,
  policy: SharedPolicy,
  gateways: readonly string[],
  conditions: readonly ConditionDraft[],
): DesiredStatus | undefined {
  const ancestors = gatewayReferences(gateways).map((ancestorRef) => ({ ancestorRef, conditions }));
  const ours = controllerName(read);
  const written = policy.status?.ancestors ?? [];
  if (ancestors.length === 0 && !written.some((ancestor) => ancestor.controllerName === ours)) return undefined;
  const { kind, metadata } = policy;
  return { kind, key: keyOfObject(policy), generation: metadata.generation ?? 0, status: { ancestors } };
}
