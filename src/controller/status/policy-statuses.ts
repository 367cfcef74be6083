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
import { type PolicyModel, policyModel } from "../translate/policy/model.ts";
import { type Overridden, overriddenAt, overriddenFilter } from "../translate/policy/overridden.ts";
import { isAttachable, type Part, partsAt } from "../translate/policy/parts.ts";
import { type Replaceable, replaceableAt } from "../translate/policy/replaceable.ts";
import type { ResolvedTarget, TargetRef } from "../translate/policy/targets.ts";
import { filterProblem, invalidKinds } from "../translate/routes/extension-ref.ts";
import { type FilterUse, filterUses } from "../translate/routes/filter-uses.ts";
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
  const uses = read.query(filterUses, key);
  const overridden = [
    ...targets.flatMap(({ target, gateways }) => overriddenAt(read, key, target, gateways)),
    ...uses.flatMap((use) => overriddenUse(read, key, input, use)),
  ];
  const parts = [
    ...targets.flatMap(({ target }) => partsAt(input, refKey(target)).parts),
    ...uses.flatMap((use) => partsOfUse(input, use)),
  ];
  const accepted = acceptance(model, overridden, parts.length);
  const problems = [
    ...targets.flatMap(({ problem }) => problem ?? []),
    ...uses.flatMap((use) => useProblem(read, input, model, use) ?? []),
  ];
  if (targets.length + uses.length === 0) problems.push(lonelyText(input));
  const conditions = [
    accepted,
    attachment(accepted, problems, model.denying, targets.length, uses),
    ...overriding(overridden),
    ...findingsCondition([...input.findings, ...model.findings]),
    ...replacing(targets.flatMap(({ target }) => replaceableAt(read, input, target) ?? [])),
  ];
  const gateways = gatewayReferences([...targets, ...uses].flatMap((each) => each.gateways));
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

function acceptance(
  { problems, warnings, usable }: PolicyModel,
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

function attachment(
  accepted: ConditionDraft,
  problems: readonly string[],
  denying: boolean,
  targets: number,
  uses: readonly FilterUse[],
): ConditionDraft {
  if (accepted.reason === "Invalid") {
    const effect = denying ? "; what it protects is denied until it is corrected" : "";
    return isFalse("Attached", "Pending", `Policy is not attached due to invalid status${effect}`);
  }
  if (problems.length > 0) return isFalse("Attached", "Pending", joined(problems));
  const attached = targets === 0 ? [] : ["Attached to all targets"];
  const used = uses.length === 0 ? [] : [`Used as a filter by ${uses.map(placeOf).join(", ")}`];
  return isTrue("Attached", "Attached", joined([...attached, ...used]));
}

/** Why a policy that nothing is attached to or filtered by has no effect. */
function lonelyText({ targetSelectors, problems }: PolicyInput): string {
  if (targetSelectors.length > 0) return "No object has the labels in targetSelectors";
  return problems.length > 0
    ? "The policy has no valid target"
    : "The policy has no targetRefs, and no route of its namespace names it in a filter of type ExtensionRef";
}

/** Why a policy has no effect as a filter. */
function useProblem(read: Read, input: PolicyInput, model: PolicyModel, use: FilterUse): string | undefined {
  const misuse = filterProblem(input, use.phase);
  if (misuse !== undefined) return `As a filter of ${placeOf(use)}, the policy ${misuse}`;
  const invalid = invalidKinds(model, use.phase).join(", ");
  if (invalid !== "") return `Requests that ${placeOf(use)} concerns get 500, because ${invalid} cannot be used`;
  if (use.gateways.length > 0) return undefined;
  return `${inWords(refKey(use.route))} is not attached to a Gateway of ${controllerName(read)}`;
}

function overriddenUse(read: Read, key: string, input: PolicyInput, use: FilterUse): readonly Overridden[] {
  return overriddenFilter(read, key, partsOfUse(input, use), ruleOf(use), use.gateways);
}

function partsOfUse(input: PolicyInput, use: FilterUse): readonly Part[] {
  return partsAt(input, refKey(ruleOf(use))).parts.filter(({ phase }) => phase === use.phase);
}

/** The rule as policies name it; the route if it has no name. */
function ruleOf({ route, rule }: FilterUse): TargetRef {
  return { ...route, ...(rule !== undefined && { section: rule }) };
}

/** `HTTPRoute shop/web (rules[0].filters[1])` */
function placeOf({ route, at }: FilterUse): string {
  return `${inWords(refKey(route))} (${at})`;
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
  if (target.kind === "Service" || target.kind === "ServiceImport" || target.kind === "TracegateBackend")
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
