/**
 * `conditional` (such as docs/policies/ext-authz.md#conditionalextauthz): a list of alternatives in place of one policy, for the
 * kinds that `defineConditionalPolicy` defines. In: prepared alternatives with their conditions. Out: hooks that run the first
 * alternative whose condition is true.
 */
import { type CelEnvironment, type Condition, readsBody, type WhenFailed } from "../../cel/index.ts";
import type { PolicyEventKind } from "../../trace/policy-kinds.ts";
import { applied, Decisions, rejected, skipped, type Texts } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { PolicyError, within } from "../contract/policy-error.ts";
import type { PolicyContext, PolicyHooks, RequestOutcome } from "../contract/types.ts";
import type { Conditional } from "../schema/conditional.ts";
import { wholeBody } from "../shared/expressions.ts";

type Choice = { readonly code: "met" | "fallback" | "notMet" } | { readonly code: "failed"; readonly why: string };
type Choices = Decisions<Choice>;

/** Of any kind of policy. */
export const CHOICE_TEXTS: Texts<Choice> = {
  met: () => applied("condition met, applying policy"),
  fallback: () => applied("fallback met, applying policy"),
  notMet: () => skipped("condition not met, skipping policy"),
  failed: ({ why }) =>
    rejected(`the condition cannot be evaluated: ${why}`, { result: "failed", error: `condition failed: ${why}` }),
};

interface Alternative {
  /** undefined: the fallback, which applies if none before it does. */
  readonly condition: Condition | undefined;
  readonly policy: PolicyHooks;
}

/** Whether a policy's configuration is a list of alternatives; no kind has its own field `conditional`. */
export function isConditional<Entry extends object>(config: unknown): config is Conditional<Entry> {
  return typeof config === "object" && config !== null && "conditional" in config;
}

/**
 * Prepares a list of alternatives. The one that is chosen for a request also handles its response. A condition that fails to
 * evaluate ends the request with TG_INVALID_REQUEST: the next alternative could be the weaker one, and clients can cause failures.
 * Throws PolicyError for an alternative that can never apply, or is itself invalid.
 */
export function prepareAlternatives<Entry extends object>(
  kind: PolicyEventKind,
  entries: Conditional<Entry>["conditional"],
  prepare: (entry: Entry, cel: CelEnvironment) => (deps: PolicyDeps) => PolicyHooks,
  cel: CelEnvironment,
): (deps: PolicyDeps) => PolicyHooks {
  const prepared = entries.map((entry, i) =>
    within(["conditional", i], () => {
      const { condition } = entry;
      if (condition === undefined && i < entries.length - 1)
        throw PolicyError.at([], "the entries after one without condition never apply; add one, or move it to the end");
      return {
        condition: condition === undefined ? undefined : cel.compileCondition(condition, "request"),
        bind: prepare(entry, cel),
      };
    }),
  );
  return (deps) => {
    const alternatives = prepared.map(({ condition, bind }, i) => ({
      condition,
      policy: bind({ ...deps, identity: `${deps.identity} ${i}`, shared: `${deps.shared} ${i}` }),
    }));
    return combine(new Decisions(kind, CHOICE_TEXTS), alternatives);
  };
}

function combine(decisions: Choices, alternatives: readonly Alternative[]): PolicyHooks {
  /** The choice per exchange, for its response; weak, so that it ends with the exchange. undefined = none applies. */
  const chosen = new WeakMap<PolicyContext, PolicyHooks | undefined>();
  const answers = alternatives.some(({ policy }) => policy.onResponse !== undefined);
  // Alternatives before the first condition that reads the body are tried without it.
  const reader = alternatives.findIndex(({ condition }) => condition !== undefined && readsBody(condition, "request"));
  const before = reader === -1 ? alternatives : alternatives.slice(0, reader);
  const use = (context: PolicyContext, policy: PolicyHooks | undefined): RequestOutcome => {
    if (answers) chosen.set(context, policy);
    return policy?.onRequest?.(context);
  };
  return {
    onRequest(context) {
      const policy = choose(decisions, before, context, "reject");
      if (policy !== undefined || reader === -1) return use(context, policy);
      return wholeBody(context, "request").then(() =>
        use(context, choose(decisions, alternatives.slice(reader), context, "reject")),
      );
    },
    ...(answers && {
      onResponse(context, response) {
        // A policy before this one rejected the request, so nothing has been chosen: choose now, for the response alone.
        const policy = chosen.has(context) ? chosen.get(context) : choose(decisions, alternatives, context, "skip");
        return policy?.onResponse?.(context, response);
      },
      upstreamOnly: alternatives.every(({ policy }) => policy.onResponse === undefined || policy.upstreamOnly === true),
    }),
  };
}

/**
 * The first alternative that applies; a trace gets one event per condition. `whenFailed`: `skip` if the request has been rejected already,
 * because a condition that fails now must not replace that response.
 */
function choose(
  decisions: Choices,
  alternatives: readonly Alternative[],
  { variables, trace }: PolicyContext,
  whenFailed: "reject" | "skip",
): PolicyHooks | undefined {
  const failed: WhenFailed = ({ what }) => {
    const decision = { code: "failed", why: what } as const;
    if (whenFailed === "reject") throw decisions.reject(trace, decision, "TG_INVALID_REQUEST");
    trace?.report(decisions, decision);
    return false;
  };
  for (const { condition, policy } of alternatives) {
    const met = condition === undefined || condition.matches(variables, failed);
    trace?.report(decisions, { code: condition === undefined ? "fallback" : met ? "met" : "notMet" });
    if (met) return policy;
  }
  return undefined;
}
