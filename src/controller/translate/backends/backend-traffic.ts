/**
 * XBackendTrafficPolicy: sessions with a Service or TracegateBackend (GEP-1619), and a budget for the retries to it (GEP-3388), whichever
 * routes send to it. A session belongs to the
 * rule of a route: rules must not share sessions, and a rule has one kind of sessions for all its backends, because it
 * is a session that chooses among them.
 */
import { z } from "zod";
import { nameOfKey } from "../../../base/object-key.ts";
import { levelOf, type PolicyLevel } from "../../../ir/origins.ts";
import { keyOfObject, refKey } from "../../../kube/keys.ts";
import { TRACEGATE_GROUP, type XBackendTrafficPolicy } from "../../../kube/objects.ts";
import { NO_LEVEL } from "../../../policies/merge.ts";
import type { PolicySet } from "../../../policies/policy-set.ts";
import { retryBudget } from "../../../policies/schema/upstream-settings.ts";
import { type SessionPersistence, schema } from "../../../policies/session-persistence/schema.ts";
import type { RetryBudgetSettings } from "../../../upstream/settings/settings.ts";
import { defineIndex, defineQuery, type Read } from "../../graph/graph.ts";
import { type Aged, byAge, byPrecedence, createdAt } from "../model/precedence.ts";
import type { ResolvedBackend } from "./backend-refs.ts";

type TargetReference = XBackendTrafficPolicy["spec"]["targetRefs"][number];

/** Kinds of backends by their groups. */
const KINDS: Readonly<Record<string, string>> = { "": "Service", [TRACEGATE_GROUP]: "TracegateBackend" };

/** The `refKey` of a reference; undefined: not a kind of backend that routes can send to. */
export function backendTarget(namespace: string, { group, kind, name }: TargetReference): string | undefined {
  return KINDS[group] === kind ? refKey({ kind, namespace, name }) : undefined;
}

/** Policies by the `refKey`s of their targets. */
const BY_TARGET = defineIndex("XBackendTrafficPolicy", ({ metadata, spec }) => [
  ...new Set(spec.targetRefs.flatMap((ref) => backendTarget(metadata.namespace, ref) ?? [])),
]);

/** Key of the policy that has a target (`refKey`), the oldest one, valid or not (GEP-713, conflict resolution). */
export const trafficPolicyOf = defineQuery<string | undefined>("trafficPolicyOf", (read, target) => {
  const [first] = [...read.find(BY_TARGET, target)].sort(byAge);
  return first && keyOfObject(first);
});

/** What a policy asks for. */
interface TrafficSettings {
  readonly session?: SessionPersistence;
  readonly budget?: RetryBudgetSettings;
}

/** The settings of a policy, or the problem that makes them unusable. Key: `<namespace>/<name>`. */
export const trafficSettings = defineQuery<TrafficSettings | { readonly problem: string }>(
  "trafficSettings",
  (read, key) => {
    const { sessionPersistence, retryConstraint } = read.get("XBackendTrafficPolicy", key)?.spec ?? {};
    if (sessionPersistence === undefined && retryConstraint === undefined)
      return { problem: "sessionPersistence and retryConstraint are missing" };
    const session = sessionPersistence === undefined ? undefined : schema.safeParse(sessionPersistence);
    const budget = retryConstraint === undefined ? undefined : CONSTRAINT.safeParse(retryConstraint);
    const problems = [...problemsOf("sessionPersistence", session), ...problemsOf("retryConstraint", budget)];
    if (problems.length > 0) return { problem: problems.join("; ") };
    return { ...(session?.success && { session: session.data }), ...(budget?.success && { budget: budget.data }) };
  },
);

const { percent, interval, minRetryRate } = retryBudget.shape;

/** `retryConstraint`: the fields of a retry budget in another form. */
const CONSTRAINT = z
  .strictObject({ budget: z.strictObject({ percent, interval }).prefault({}), minRetryRate })
  .transform(({ budget, minRetryRate: rate }): RetryBudgetSettings => ({ ...budget, minRetryRate: rate }));

function problemsOf(field: string, parsed: z.ZodSafeParseResult<unknown> | undefined): readonly string[] {
  const issues = parsed?.error?.issues ?? [];
  return issues.map(({ path, message }) => `${[field, ...path].join(".")}: ${message}`);
}

interface SessionChoice extends Aged {
  readonly session: SessionPersistence;
}

/** The sessions that the policy of a backend (`refKey`) asks for. */
const sessionAt = defineQuery<SessionChoice | undefined>("sessionAt", (read, target) => {
  const key = read.query(trafficPolicyOf, target);
  const policy = key && read.get("XBackendTrafficPolicy", key);
  if (policy === undefined || policy === "" || key === undefined) return undefined;
  const found = read.query(trafficSettings, key);
  if ("problem" in found || found.session === undefined) return undefined;
  return { key, created: createdAt(policy), session: found.session };
});

/** The retry budget of a backend, by the policy that it has. `whole`: its `refKey`, if it is one that can be called. */
export function retryBudgetOf(read: Read, whole: string | undefined): PolicyLevel {
  const key = whole && read.query(trafficPolicyOf, whole);
  const found = key ? read.query(trafficSettings, key) : {};
  if (!key || "problem" in found || found.budget === undefined) return NO_LEVEL;
  return written({ retryBudget: found.budget }, key, "retryConstraint");
}

/** Policies that a field of the policy with this key stands for. */
function written(set: PolicySet, key: string, field: string): PolicyLevel {
  return levelOf(set, () => ({ in: { kind: "XBackendTrafficPolicy", ...nameOfKey(key) }, at: ["spec", field] }));
}

/**
 * The sessions of a rule by the policies of its backends. Of several the oldest applies, and also to backends without a policy: if it
 * applied to its own only, clients would leave the others one after the other.
 */
export function sessionOfBackends(read: Read, backends: readonly Pick<ResolvedBackend, "targets">[]): PolicyLevel {
  const choices = backends.flatMap(({ targets: [whole] }) => (whole && read.query(sessionAt, whole)) || []);
  const [oldest] = choices.sort(byPrecedence);
  if (oldest === undefined) return NO_LEVEL;
  return written({ sessionPersistence: oldest.session }, oldest.key, "sessionPersistence");
}
