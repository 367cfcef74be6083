/** Statuses of TracegatePolicies and TracegateBackends (docs/crds.md#what-a-status-says). */
import { keyOfObject, refKey, refOf } from "../../kube/keys.ts";
import { type ParentReference, TRACEGATE_GROUP } from "../../kube/objects.ts";
import { SECTIONS, TARGET_KINDS } from "../crd/policy.ts";
import { defineQuery, type Read } from "../graph/graph.ts";
import { policyAttachments } from "../translate/attachments.ts";
import { backendModel } from "../translate/backends/backends.ts";
import { findingsCondition, isFalse, isTrue, joined } from "../translate/model/conditions.ts";
import { controllerName } from "../translate/model/gateway-class.ts";
import type { ConditionDraft } from "../translate/model/model.ts";
import { type PolicyInput, policyInput } from "../translate/policy/input.ts";
import { policyModel } from "../translate/policy/model.ts";
import { type Overridden, overriddenAt } from "../translate/policy/overridden.ts";
import { isAttachable, partsAt } from "../translate/policy/parts.ts";
import { type Replaceable, replaceableAt } from "../translate/policy/replaceable.ts";
import type { ResolvedTarget } from "../translate/policy/targets.ts";
import { type DesiredStatus, gatewayReferences } from "./desired.ts";

export function policyStatuses(read: Read): readonly DesiredStatus[] {
  return read
    .list("TracegatePolicy")
    .map((policy) => read.query(policyStatus, keyOfObject(policy)))
    .filter((status) => status !== undefined);
}

export function backendStatuses(read: Read): readonly DesiredStatus[] {
  return read
    .list("TracegateBackend")
    .map((backend) => read.query(backendStatus, keyOfObject(backend)))
    .filter((status) => status !== undefined);
}

const policyStatus = defineQuery<DesiredStatus | undefined>("policyStatus", (read, key) => {
  const input = read.query(policyInput, key);
  const model = read.query(policyModel, key);
  if (input === undefined || model === undefined) return undefined;
  const targets = read.query(policyAttachments, key).map(({ target, gateways }) => ({
    target,
    gateways,
    problem: attachmentProblem(read, input, target, gateways),
  }));
  const overridden = targets.flatMap(({ target, gateways }) => overriddenAt(read, key, target, gateways));
  const parts = targets.flatMap(({ target }) => partsAt(input, refKey(target)).parts).length;
  const accepted = acceptance(model, overridden, parts);
  const problems = targets.map(({ problem }) => problem).filter((problem) => problem !== undefined);
  if (targets.length === 0)
    problems.push(
      input.problems.length > 0 ? "The policy has no valid target" : "No object has the labels in targetSelectors",
    );
  const conditions = [
    accepted,
    attachment(accepted, problems, model.denying),
    ...overriding(overridden),
    ...findingsCondition([...input.findings, ...model.findings]),
    ...replacing(targets.flatMap(({ target }) => replaceableAt(read, input, target) ?? [])),
  ];
  const gateways = gatewayReferences(targets.flatMap((each) => each.gateways));
  const refs = isOfOthers(read, key, gateways) ? [] : gateways.length > 0 ? gateways : [fallbackReference(input)];
  return {
    kind: "TracegatePolicy",
    key,
    generation: input.generation,
    status: { ancestors: refs.map((ancestorRef) => ({ ancestorRef, conditions })) },
  };
});

/** Another controller of the cluster applies the policy; this one does not. */
function isOfOthers(read: Read, key: string, gateways: readonly ParentReference[]): boolean {
  if (gateways.length > 0) return false;
  const written = read.get("TracegatePolicy", key)?.status?.ancestors ?? [];
  return written.some((each) => each.controllerName !== controllerName(read) && each.ancestorRef.kind === "Gateway");
}

type Model = NonNullable<ReturnType<(typeof policyModel)["run"]>>;

function acceptance(
  { problems, warnings, usable }: Model,
  overridden: readonly Overridden[],
  parts: number,
): ConditionDraft {
  if (problems.length > 0)
    return usable
      ? isTrue("Accepted", "PartiallyValid", joined(problems))
      : isFalse("Accepted", "Invalid", joined(problems));
  const conflicts = overridden.filter(({ wider, listener }) => wider === undefined && listener === undefined);
  if (parts > 0 && conflicts.length === parts)
    return isFalse("Accepted", "Conflicted", joined(overridden.map(overriddenText)));
  return isTrue("Accepted", "Valid", warnings.length === 0 ? "Policy is valid" : joined(warnings));
}

function attachment(accepted: ConditionDraft, problems: readonly string[], denying: boolean): ConditionDraft {
  if (accepted.reason === "Invalid") {
    const effect = denying ? "; what it protects is denied until it is corrected" : "";
    return isFalse("Attached", "Pending", `Policy is not attached due to invalid status${effect}`);
  }
  if (problems.length > 0) return isFalse("Attached", "Pending", joined(problems));
  return isTrue("Attached", "Attached", "Attached to all targets");
}

function overriding(overridden: readonly Overridden[]): readonly ConditionDraft[] {
  return overridden.length === 0 ? [] : [isTrue("Overridden", "Overridden", joined(overridden.map(overriddenText)))];
}

/** A warning: the author may not know that routes decide if inheritance is not set. */
function replacing(replaceable: readonly Replaceable[]): readonly ConditionDraft[] {
  if (replaceable.length === 0) return [];
  const who = replaceable.map(
    ({ kinds, target, by }) => `${kinds.join(", ")} of ${inWords(target)} can be replaced by ${by}`,
  );
  const advice = "set strategy.inheritance to Override to prevent that, or to Default to allow it";
  return [isTrue("Replaceable", "InheritanceNotSet", `${joined(who)}; ${advice}`)];
}

/** `timeout of HTTPRoute apps/web is overridden by TracegatePolicy apps/older`. */
function overriddenText({ kind, target, by, wider, listener }: Overridden): string {
  const how =
    wider !== undefined
      ? ` of ${inWords(wider)} with the inheritance Override`
      : listener !== undefined
        ? ` of ${inWords(listener)}, which has the same port and comes first`
        : "";
  return `${kind} of ${inWords(target)} is overridden by TracegatePolicy ${by}${how}`;
}

/** `HTTPRoute/apps/web/main` → `HTTPRoute apps/web (main)`. */
function inWords(target: string): string {
  const { kind, namespace, name, section } = refOf(target);
  return `${kind} ${namespace}/${name}${section === undefined ? "" : ` (${section})`}`;
}

/** Why a policy has no or only a partial effect at a target. */
function attachmentProblem(
  read: Read,
  input: PolicyInput,
  target: ResolvedTarget,
  gateways: readonly string[],
): string | undefined {
  if (target.problem !== undefined) return target.problem;
  const what = inWords(refKey(target));
  const misplaced = SECTIONS.filter((name) => input.sections.includes(name) && !isAttachable(name, input, target.kind));
  if (misplaced.length > 0) return `${misplaced.join(", ")} cannot be attached to ${what}`;
  if (partsAt(input, refKey(target)).parts.length === 0) return `Nothing in this policy applies to ${what}`;
  if (gateways.length > 0) return undefined;
  const ours = controllerName(read);
  if (target.kind === "Gateway") return `${what} is not managed by ${ours}; check its gatewayClassName`;
  if (target.kind === "Service" || target.kind === "TracegateBackend")
    return `No route or policy on a Gateway of ${ours} uses ${what}`;
  return `${what} is not attached to a Gateway of ${ours}`;
}

/** For a policy that affects no Gateway: its first target, or the policy itself. */
function fallbackReference({ key, namespace, targetRefs }: PolicyInput): ParentReference {
  const [first] = targetRefs;
  if (first !== undefined) return { group: TARGET_KINDS[first.kind], kind: first.kind, namespace, name: first.name };
  return { group: TRACEGATE_GROUP, kind: "TracegatePolicy", namespace, name: key.slice(namespace.length + 1) };
}

const backendStatus = defineQuery<DesiredStatus | undefined>("backendStatus", (read, key) => {
  const model = read.query(backendModel, key);
  if (model === undefined) return undefined;
  const { target, problems, refused, findings } = model;
  const generation = read.get("TracegateBackend", key)?.metadata.generation ?? 0;
  const condition =
    problems.length === 0
      ? isTrue("Accepted", "Accepted", "Backend is accepted")
      : target.type === "invalid"
        ? isFalse("Accepted", refused ? "HostNotAllowed" : "Invalid", joined(problems))
        : isTrue("Accepted", "PartiallyValid", joined(problems));
  return {
    kind: "TracegateBackend",
    key,
    generation,
    status: { conditions: [condition, ...findingsCondition(findings)] },
  };
});
