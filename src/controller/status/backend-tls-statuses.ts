/** Statuses of BackendTLSPolicies: what the Gateways whose routes call the Service make of them. */
import { keyOfObject, objectKey, type ParentReference } from "../../kube/objects.ts";
import { defineQuery, type Read } from "../graph.ts";
import { conflictsOf, translatedBackendTls } from "../translate/backend-tls.ts";
import { isFalse } from "../translate/conditions.ts";
import { controllerName, GATEWAY_GROUP } from "../translate/gateway-class.ts";
import type { ConditionDraft } from "../translate/model.ts";
import { gatewaysOfService } from "../translate/service-routes.ts";
import type { DesiredStatus } from "./desired.ts";

export function backendTlsStatuses(read: Read): readonly DesiredStatus[] {
  return read
    .list("BackendTLSPolicy")
    .map((policy) => read.query(backendTlsStatus, keyOfObject(policy)))
    .filter((status) => status !== undefined);
}

/** The API server takes no more (PolicyStatus.ancestors). */
const MAX_ANCESTORS = 16;

/** undefined: no Gateway of ours calls its targets, and none did. */
const backendTlsStatus = defineQuery<DesiredStatus | undefined>("backendTlsStatus", (read, key) => {
  const policy = read.get("BackendTLSPolicy", key);
  if (policy === undefined) return undefined;
  const { namespace } = policy.metadata;
  const gateways = policy.spec.targetRefs.flatMap(({ group, kind, name }) =>
    group === "" && kind === "Service" ? read.query(gatewaysOfService, objectKey({ namespace, name })) : [],
  );
  const conditions = conditionsOf(read, key);
  const ancestors = [...new Set(gateways)]
    .sort()
    .slice(0, MAX_ANCESTORS)
    .map((gateway) => ({ ancestorRef: referenceTo(gateway), conditions }));
  const ours = controllerName(read);
  const written = policy.status?.ancestors ?? [];
  if (ancestors.length === 0 && !written.some((ancestor) => ancestor.controllerName === ours)) return undefined;
  return { kind: "BackendTLSPolicy", key, generation: policy.metadata.generation ?? 0, status: { ancestors } };
});

/** Of the policy itself, unless older ones have all of its targets. */
function conditionsOf(read: Read, key: string): readonly ConditionDraft[] {
  const policy = read.get("BackendTLSPolicy", key);
  const { conditions } = read.query(translatedBackendTls, key);
  if (policy === undefined) return conditions;
  const targets = policy.spec.targetRefs;
  const conflicts = conflictsOf(read, policy);
  if (conflicts.length === 0) return conditions;
  const others = [...new Set(conflicts)].join(", ");
  if (conflicts.length === targets.length) {
    const conflicted = isFalse("Accepted", "Conflicted", `Older policies have the same targets: ${others}`);
    return conditions.map((each) => (each.type === "Accepted" ? conflicted : each));
  }
  return conditions.map((each) =>
    each.type === "Accepted" && each.status === "True"
      ? { ...each, message: `${each.message}, except for targets that older policies have: ${others}` }
      : each,
  );
}

function referenceTo(gateway: string): ParentReference {
  const [namespace = "", name = ""] = gateway.split("/");
  return { group: GATEWAY_GROUP, kind: "Gateway", namespace, name };
}
