/** TracegateBackends: destinations that are not Services. */
import { nameOfKey } from "../../../base/object-key.ts";
import type { PolicyLevel } from "../../../ir/origins.ts";
import { type HostCheck, translateTarget } from "../../../translation/target.ts";
import type { Target } from "../../../upstream/settings/target.ts";
import { type BackendSpec, backendSpec } from "../../crd/backend.ts";
import { parseAt } from "../../crd/parse-spec.ts";
import { defineQuery } from "../../graph/graph.ts";
import { hostCheck } from "../cluster/cluster-hosts.ts";
import type { LintFinding } from "../model/conditions.ts";
import { backendInput, callContext, hostOf } from "../policy/calls.ts";
import { translateKinds } from "../policy/model.ts";
import { Problems } from "../policy/problems.ts";

interface BackendModel {
  /** `invalid` if there is no address. */
  readonly target: Target;
  /** Its own policies; those that are attached to it come from `attachedPolicies`. */
  readonly policies: PolicyLevel;
  /** Everything that is wrong with it: `spec.static: …`. A backend with problems in its policies can be called. */
  readonly problems: readonly string[];
  readonly findings: readonly LintFinding[];
  /** Its host is inside the cluster, which the operator does not allow. */
  readonly refused: boolean;
  /** Documents that its policies need. */
  readonly urls: readonly string[];
}

/** Key: `<namespace>/<name>`; undefined: there is no such backend. */
export const backendModel = defineQuery<BackendModel | undefined>("backendModel", (read, key) => {
  const backend = read.get("TracegateBackend", key);
  if (backend === undefined) return undefined;
  const { namespace } = backend.metadata;
  const hosts = hostCheck(read, namespace);
  const problems = new Problems();
  const spec = parseAt(backendSpec, backend.spec, ["spec"], problems.report);
  const input = read.query(backendInput, key);
  const urls: string[] = [];
  const context = callContext(read, namespace, input.callees, problems.report, urls);
  const path = ["spec", "policies"];
  const { level } = translateKinds(input.policies, input.invalid, "backend", path, context, problems, {
    kind: "TracegateBackend",
    ...nameOfKey(key),
  });
  return {
    target: spec === undefined ? { type: "invalid", reference: key } : targetOf(spec, key, problems, hosts),
    policies: level,
    problems: [...new Set([...input.problems, ...problems.errors])],
    findings: [...input.findings, ...problems.findings],
    refused: problems.causes.has("clusterHost"),
    urls,
  };
});

function targetOf(spec: BackendSpec, key: string, problems: Problems, hosts: HostCheck): Target {
  const { dynamicForwardProxy } = spec;
  const host = hostOf(spec);
  if (host === undefined && dynamicForwardProxy === undefined) return { type: "invalid", reference: key };
  return translateTarget(
    { host, dns: spec.static?.dns, service: undefined, backend: undefined, dynamic: dynamicForwardProxy },
    ["spec", "static"],
    { report: problems.report, incomplete: new Set(), routeGroups: new Set(), services: new Map(), hosts },
  );
}
