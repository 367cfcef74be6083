/** Statuses of BackendTLSPolicies, with one ancestor for each Gateway whose routes call the Service. */
import { objectKey } from "../../base/object-key.ts";
import { keyOfObject } from "../../kube/keys.ts";
import { defineQuery, type Read } from "../graph/graph.ts";
import { conflictsOf, isService, translatedBackendTls } from "../translate/backends/backend-tls.ts";
import { isFalse } from "../translate/model/conditions.ts";
import type { ConditionDraft } from "../translate/model/model.ts";
import { gatewaysOfService } from "../translate/routes/service-routes.ts";
import { ancestorStatus } from "./ancestors.ts";
import type { DesiredStatus } from "./desired.ts";

export function backendTlsStatuses(read: Read): readonly DesiredStatus[] {
  return read
    .list("BackendTLSPolicy")
    .map((policy) => read.query(backendTlsStatus, keyOfObject(policy)))
    .filter((status) => status !== undefined);
}

/** undefined: no Gateway of ours calls its targets or has done so. */
const backendTlsStatus = defineQuery<DesiredStatus | undefined>("backendTlsStatus", (read, key) => {
  const policy = read.get("BackendTLSPolicy", key);
  if (policy === undefined) return undefined;
  const { namespace } = policy.metadata;
  const gateways = policy.spec.targetRefs.flatMap((target) =>
    isService(target) ? read.query(gatewaysOfService, objectKey({ namespace, name: target.name })) : [],
  );
  return ancestorStatus(read, policy, gateways, conditionsOf(read, key));
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
