/** Statuses of XBackendTrafficPolicies, with one ancestor for each Gateway whose routes send to their targets. */
import { isDeepStrictEqual } from "node:util";
import { keyOfObject, refOf } from "../../kube/keys.ts";
import { TRACEGATE_GROUP, type XBackendTrafficPolicy } from "../../kube/objects.ts";
import { defineQuery, type Read } from "../graph/graph.ts";
import { backendTarget, trafficPolicyOf, trafficSettings } from "../translate/backends/backend-traffic.ts";
import { keyOfService } from "../translate/cluster/discovery.ts";
import { isFalse, isTrue, joined } from "../translate/model/conditions.ts";
import { type ConditionDraft, HTTP_KINDS, type RouteKind } from "../translate/model/model.ts";
import type { TargetRef } from "../translate/policy/targets.ts";
import { routeModel } from "../translate/routes/routes.ts";
import { gatewaysOfRoute, routesOfService } from "../translate/routes/service-routes.ts";
import { ancestorStatus } from "./ancestors.ts";
import type { DesiredStatus } from "./desired.ts";

export function backendTrafficStatuses(read: Read): readonly DesiredStatus[] {
  return read
    .list("XBackendTrafficPolicy")
    .map((policy) => read.query(backendTrafficStatus, keyOfObject(policy)))
    .filter((status) => status !== undefined);
}

/** undefined: no HTTP route of a Gateway of ours sends to its targets or has done so. */
const backendTrafficStatus = defineQuery<DesiredStatus | undefined>("backendTrafficStatus", (read, key) => {
  const policy = read.get("XBackendTrafficPolicy", key);
  if (policy === undefined) return undefined;
  const targets = targetsOf(policy);
  const gateways = targets
    .flatMap((target) => routesOf(read, target))
    .flatMap((route) => read.query(gatewaysOfRoute, route));
  return ancestorStatus(read, policy, gateways, conditionsOf(read, policy, key));
});

function targetsOf({ metadata, spec }: XBackendTrafficPolicy): readonly string[] {
  return spec.targetRefs.flatMap((ref) => backendTarget(metadata.namespace, ref) ?? []);
}

/** Keys (`<kind>/<namespace>/<name>`) of the routes with HTTP that refer to a `refKey`. */
function routesOf(read: Read, target: string): readonly string[] {
  const { kind, namespace, name } = refOf<TargetRef["kind"]>(target);
  const routes = read.query(routesOfService, kind === "Service" ? `${namespace}/${name}` : target);
  return routes.filter((route) => HTTP_KINDS.has(refOf<RouteKind>(route).kind));
}

function conditionsOf(read: Read, policy: XBackendTrafficPolicy, key: string): readonly ConditionDraft[] {
  const { targetRefs } = policy.spec;
  const found = read.query(trafficSettings, key);
  if ("problem" in found) return [isFalse("Accepted", "Invalid", found.problem)];
  const problems = targetRefs.flatMap((ref) => targetProblem(read, policy, ref) ?? []);
  const [first] = problems;
  const all = joined(problems.map(({ message }) => message));
  if (first !== undefined && problems.length === targetRefs.length) return [isFalse("Accepted", first.reason, all)];
  const exceptions = first === undefined ? [] : [all];
  const accepted = isTrue("Accepted", "Accepted", joined(["Policy is accepted", ...exceptions]));
  const others = targetsOf(policy)
    .filter((target) => read.query(trafficPolicyOf, target) === key)
    .flatMap((target) => routesOf(read, target).filter((route) => read.query(hasOtherSessions, [key, target, route])));
  if (others.length === 0) return [accepted];
  const routes = others.map((route) => route.replace("/", " "));
  const why = `Other sessions take precedence, of the route, of a TracegatePolicy, or of an older policy for another of its backends: ${joined(routes)}`;
  return [accepted, isTrue("Overridden", "Overridden", why)];
}

/** Why a policy does not apply to one of its targets. */
function targetProblem(
  read: Read,
  policy: XBackendTrafficPolicy,
  ref: XBackendTrafficPolicy["spec"]["targetRefs"][number],
): { readonly reason: "Invalid" | "TargetNotFound" | "Conflicted"; readonly message: string } | undefined {
  const { namespace } = policy.metadata;
  const target = backendTarget(namespace, ref);
  if (target === undefined)
    return {
      reason: "Invalid",
      message: `targetRefs: ${ref.kind} of group "${ref.group}" is not supported; use a Service or a TracegateBackend (${TRACEGATE_GROUP})`,
    };
  const object = `${ref.kind} ${namespace}/${ref.name}`;
  if (read.get(refOf<TargetRef["kind"]>(target).kind, `${namespace}/${ref.name}`) === undefined)
    return { reason: "TargetNotFound", message: `${object} does not exist` };
  const owner = read.query(trafficPolicyOf, target);
  return owner === keyOfObject(policy)
    ? undefined
    : { reason: "Conflicted", message: `${object} has an older policy, ${owner}` };
}

/**
 * Whether a route sends to the target of a policy in a rule that uses other sessions than the policy's. Of a policy, a target
 * (`refKey`) and a route.
 */
type PolicyAtRoute = readonly [policy: string, target: string, route: string];
const hasOtherSessions = defineQuery<boolean, PolicyAtRoute>("hasOtherSessions", (read, [key, target, routeKey]) => {
  const found = read.query(trafficSettings, key);
  if ("problem" in found || found.session === undefined) return false;
  const { kind, namespace, name } = refOf<TargetRef["kind"]>(target);
  const service = keyOfService(namespace, name);
  const { parents } = read.query(routeModel, routeKey);
  return parents
    .flatMap(({ attachments }) => attachments.flatMap(({ routes }) => routes))
    .filter(({ backends }) =>
      backends.some((backend) =>
        kind === "Service"
          ? backend.target.type === "service" && backend.target.key === service
          : backend.key === `/${namespace}/${name}`,
      ),
    )
    .some(({ policies }) => !isDeepStrictEqual(policies.sessionPersistence, found.session));
});
