import { GatewayError } from "../../base/errors.ts";
import type { CelEnvironment, CelError, Condition, WhenFailed } from "../../cel/index.ts";
import type { PolicyDeps } from "../deps.ts";
import { PolicyError, within } from "../policy-error.ts";
import { afterRequestBody, afterWholeBody } from "../shared/expressions.ts";
import type { PolicyContext, PolicyHooks, RequestOutcome } from "../types.ts";
import type { Conditional } from "./schema.ts";

interface Alternative {
  /** undefined = applies when none before it does. */
  readonly condition: Condition | undefined;
  readonly policy: PolicyHooks;
}

/** Whether a policy's configuration is a list of alternatives. */
export function isConditional<Entry extends object>(config: unknown): config is Conditional<Entry> {
  return typeof config === "object" && config !== null && "conditional" in config;
}

/**
 * Prepares a list of alternatives: the first whose condition is true applies, for the response as well (reference 1.11). A
 * condition that fails ends the request with TG_INVALID_REQUEST: whichever alternative came next, it could be the wrong one.
 * `refuses`: see `Alternatives` of `policy.ts`. Throws PolicyError for an alternative that is never tried or cannot work.
 */
export function prepareAlternatives<Entry extends object>(
  kind: string,
  entries: Conditional<Entry>["conditional"],
  prepare: (entry: Entry, cel: CelEnvironment) => (deps: PolicyDeps) => PolicyHooks,
  refuses: boolean,
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
      policy: bind({ ...deps, identity: `${deps.identity} ${i}` }),
    }));
    return combine(kind, alternatives, refuses);
  };
}

function combine(kind: string, alternatives: readonly Alternative[], refuses: boolean): PolicyHooks {
  /** What has been chosen for an exchange; undefined = nothing. */
  const chosen = new WeakMap<PolicyContext, PolicyHooks | undefined>();
  const answers = alternatives.some(({ policy }) => policy.onResponse !== undefined);
  const conditions = alternatives.map(({ condition }) => condition).filter((each) => each !== undefined);
  const onRequest = (context: PolicyContext): RequestOutcome => {
    const policy = choose(kind, alternatives, context, refuse);
    if (answers) chosen.set(context, policy);
    return policy?.onRequest?.(context);
  };
  return {
    onRequest: (refuses ? afterWholeBody : afterRequestBody)(conditions, onRequest),
    ...(answers && {
      onResponse(context, response) {
        // A request that was refused before its turn came is answered by the same rules.
        const policy = chosen.has(context) ? chosen.get(context) : choose(kind, alternatives, context, skip);
        return policy?.onResponse?.(context, response);
      },
      upstreamOnly: alternatives.every(({ policy }) => policy.onResponse === undefined || policy.upstreamOnly === true),
    }),
  };
}

function refuse(error: CelError): never {
  throw new GatewayError("TG_INVALID_REQUEST", undefined, error);
}

/** A response is there already, and the request was refused. */
function skip(): boolean {
  return false;
}

function choose(
  kind: string,
  alternatives: readonly Alternative[],
  { variables, trace }: PolicyContext,
  whenFailed: WhenFailed,
): PolicyHooks | undefined {
  const failed: WhenFailed = (error) => {
    trace?.applied(kind, { result: "failed", error: `condition failed: ${error.what}` });
    return whenFailed(error);
  };
  for (const { condition, policy } of alternatives) {
    if (condition === undefined) {
      trace?.applied(kind, "fallback met, applying policy");
      return policy;
    }
    if (condition.matches(variables, failed)) {
      trace?.applied(kind, "condition met, applying policy");
      return policy;
    }
    trace?.skipped(kind, "condition not met, skipping policy");
  }
  return undefined;
}
