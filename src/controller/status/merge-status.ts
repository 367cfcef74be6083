import { isDeepStrictEqual } from "node:util";
import { redactUrls } from "../../base/redaction.ts";
import { type Condition, GATEWAY_GROUP, type KubeObject, type ParentReference } from "../../kube/objects.ts";
import type { ConditionDraft } from "../translate/model/model.ts";
import type { DesiredStatus } from "./desired.ts";

/** What the API server accepts (Gateway API, metav1.Condition). */
const MAX_PARENTS = 32;
const MAX_ANCESTORS = 16;
const MAX_MESSAGE = 32_768;

type Fields = Readonly<Record<string, unknown>>;

/** A change of an object's status, as a merge patch of `status`. */
export interface StatusChange {
  readonly status: Fields;
  /** The patch replaces a list that others write too, so it must not be applied to another version of the object. */
  readonly shared: boolean;
}

/**
 * What makes the status of `live` the desired one; undefined if it is. Conditions keep the time of their last transition while
 * their status is the same. `now`: RFC 3339.
 */
export function statusChange(
  { generation, status }: DesiredStatus,
  live: KubeObject,
  controllerName: string,
  now: string,
): StatusChange | undefined {
  const before = (live as { readonly status?: Fields }).status ?? {};
  const conditions = (drafts: readonly ConditionDraft[], old: unknown): Condition[] =>
    drafts.map((draft) => datedCondition(draft, generation, asList<Condition>(old), now));
  const entries = (field: "parents" | "ancestors", limit: number, drafts: readonly StatusEntryDraft[]) => {
    const old = asList<StatusEntry>(before[field]);
    const others = old.filter((each) => each.controllerName !== controllerName);
    const own = old.filter((each) => each.controllerName === controllerName);
    const wanted = drafts.slice(0, Math.max(0, limit - others.length)).map((draft) => ({
      ...draft,
      controllerName,
      conditions: conditions(draft.conditions, own.find((each) => sameReference(each, draft))?.conditions),
    }));
    // The order among controllers means nothing. If two of them insisted on it, they would write forever.
    if (isDeepStrictEqual(own, wanted)) return undefined;
    return { status: { [field]: [...others, ...wanted] }, shared: true };
  };

  if ("parents" in status)
    return entries(
      "parents",
      MAX_PARENTS,
      status.parents.map(({ parentRef, ...rest }) => ({ parentRef: withDefaults(parentRef), ...rest })),
    );
  if ("ancestors" in status)
    return entries(
      "ancestors",
      MAX_ANCESTORS,
      status.ancestors.map(({ ancestorRef, ...rest }) => ({ ancestorRef: withDefaults(ancestorRef), ...rest })),
    );
  if ("loadBalancer" in status) {
    const { ingress = [] } = (before.loadBalancer ?? {}) as { readonly ingress?: unknown };
    return isDeepStrictEqual(ingress, status.loadBalancer.ingress)
      ? undefined
      : { status: { ...status }, shared: false };
  }
  const wanted: Record<string, unknown> = { ...status, conditions: conditions(status.conditions, before.conditions) };
  if ("listeners" in status) {
    const old = asList<{ readonly name: string; readonly conditions?: unknown }>(before.listeners);
    wanted.listeners = status.listeners.map((listener) => ({
      ...listener,
      supportedKinds: listener.supportedKinds.map(({ group = GATEWAY_GROUP, kind }) => ({ group, kind })),
      conditions: conditions(listener.conditions, old.find(({ name }) => name === listener.name)?.conditions),
    }));
    // Addresses that are no longer assigned.
    if (status.addresses === undefined && before.addresses !== undefined) wanted.addresses = null;
  }
  const change = Object.fromEntries(
    Object.entries(wanted).filter(([field, value]) => !isDeepStrictEqual(value, before[field])),
  );
  return Object.keys(change).length === 0 ? undefined : { status: change, shared: false };
}

interface StatusEntryDraft {
  readonly parentRef?: ParentReference;
  readonly ancestorRef?: ParentReference;
  readonly conditions: readonly ConditionDraft[];
}

interface StatusEntry extends StatusEntryDraft {
  readonly controllerName: string;
  readonly conditions: readonly Condition[];
}

function sameReference(a: StatusEntryDraft, b: StatusEntryDraft): boolean {
  return isDeepStrictEqual(a.parentRef, b.parentRef) && isDeepStrictEqual(a.ancestorRef, b.ancestorRef);
}

/** As the API server stores it. */
function withDefaults(reference: ParentReference): ParentReference {
  return { group: GATEWAY_GROUP, kind: "Gateway", ...reference };
}

function datedCondition(
  draft: ConditionDraft,
  observedGeneration: number,
  before: readonly Condition[],
  now: string,
): Condition {
  const { type, status, reason, message } = draft;
  const old = before.find((each) => each.type === type);
  const lastTransitionTime = (old?.status === status ? old.lastTransitionTime : undefined) ?? now;
  return {
    type,
    status,
    reason,
    message: redactUrls(message).slice(0, MAX_MESSAGE),
    observedGeneration,
    lastTransitionTime,
  };
}

function asList<T>(value: unknown): readonly T[] {
  return Array.isArray(value) ? value : [];
}
