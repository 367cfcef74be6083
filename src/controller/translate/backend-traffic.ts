/**
 * XBackendTrafficPolicy: sessions with a Service or TracegateBackend, whichever routes send to it (GEP-1619). A session belongs to the
 * rule of a route: rules must not share sessions, and a rule has one kind of sessions for all its backends, because it
 * is a session that chooses among them.
 */
import { keyOfObject, TRACEGATE_GROUP, type XBackendTrafficPolicy } from "../../kube/objects.ts";
import { NO_POLICY_SET } from "../../policies/merge.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import { type SessionPersistence, schema } from "../../policies/session-persistence/schema.ts";
import { defineIndex, defineQuery, type Read } from "../graph.ts";
import type { ResolvedBackend } from "./backend-refs.ts";
import { policyTarget } from "./policy/targets.ts";
import { type Aged, byAge, byPrecedence, createdAt } from "./precedence.ts";

type TargetReference = XBackendTrafficPolicy["spec"]["targetRefs"][number];

/** Kinds of backends by their groups. */
const KINDS: Readonly<Record<string, string>> = { "": "Service", [TRACEGATE_GROUP]: "TracegateBackend" };

/** The `policyTarget` of a reference; undefined: not a kind of backend that routes can send to. */
export function backendTarget(namespace: string, { group, kind, name }: TargetReference): string | undefined {
  return KINDS[group] === kind ? policyTarget(kind, namespace, name) : undefined;
}

/** Policies by the `policyTarget`s of their targets. */
const BY_TARGET = defineIndex("XBackendTrafficPolicy", ({ metadata, spec }) => [
  ...new Set(spec.targetRefs.flatMap((ref) => backendTarget(metadata.namespace, ref) ?? [])),
]);

/** Key of the policy that has a target (`policyTarget`), the oldest one, valid or not (GEP-713, conflict resolution). */
export const trafficPolicyOf = defineQuery<string | undefined>("trafficPolicyOf", (read, target) => {
  const [first] = [...read.find(BY_TARGET, target)].sort(byAge);
  return first && keyOfObject(first);
});

/** The session settings of a policy, or the problem that makes them unusable. Key: `<namespace>/<name>`. */
export const trafficSession = defineQuery<{ readonly session: SessionPersistence } | { readonly problem: string }>(
  "trafficSession",
  (read, key) => {
    const { sessionPersistence, retryConstraint } = read.get("XBackendTrafficPolicy", key)?.spec ?? {};
    if (sessionPersistence === undefined)
      return {
        problem: retryConstraint === undefined ? "sessionPersistence is missing" : UNSUPPORTED_RETRY_CONSTRAINT,
      };
    const { success, data, error } = schema.safeParse(sessionPersistence);
    if (success) return { session: data };
    const problems = error.issues.map(
      ({ path, message }) => `${["sessionPersistence", ...path].join(".")}: ${message}`,
    );
    return { problem: problems.join("; ") };
  },
);

export const UNSUPPORTED_RETRY_CONSTRAINT =
  "retryConstraint is not supported and has no effect; limit retries by retry.attempts of the rules of routes";

interface SessionChoice extends Aged {
  readonly session: SessionPersistence;
}

/** The sessions that the policy of a backend (`policyTarget`) asks for. */
const sessionAt = defineQuery<SessionChoice | undefined>("sessionAt", (read, target) => {
  const key = read.query(trafficPolicyOf, target);
  const policy = key && read.get("XBackendTrafficPolicy", key);
  if (policy === undefined || policy === "" || key === undefined) return undefined;
  const found = read.query(trafficSession, key);
  return "session" in found ? { key, created: createdAt(policy), session: found.session } : undefined;
});

/**
 * The sessions of a rule by the policies of its backends. Of several the oldest applies, and also to backends without a policy: if it
 * applied to its own only, clients would leave the others one after the other.
 */
export function sessionOfBackends(read: Read, backends: readonly Pick<ResolvedBackend, "targets">[]): PolicySet {
  const choices = backends.flatMap(({ targets: [whole] }) => (whole && read.query(sessionAt, whole)) || []);
  const [oldest] = choices.sort(byPrecedence);
  return oldest === undefined ? NO_POLICY_SET : { sessionPersistence: oldest.session };
}
