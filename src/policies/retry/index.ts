import { withDurations } from "../../base/durations.ts";
import type { CelEnvironment, Expression } from "../../cel/index.ts";
import { definePolicy } from "../policy.ts";
import type { PolicyHooks, RetryPlan } from "../types.ts";
import type { Retry } from "./schema.ts";

const KIND = "retry";

export const retry = definePolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "retry",
  prepare,
  redact: (config) => withDurations(config, "backoff"),
});

/** Whether the policy says by itself which methods it repeats. Throws CelError for a precondition that cannot be used. */
export function namesMethods({ precondition }: Retry, cel: CelEnvironment): boolean {
  return precondition !== undefined && readsMethod(cel.compileCondition(precondition, "request"));
}

function readsMethod({ reads }: Expression): boolean {
  return reads.has("request.method");
}

/** A request about which the precondition says nothing is sent once. */
const doNotRepeat = (): boolean => false;

/**
 * Tries a failed call again (reference 3.18): on the statuses in `codes`, when `condition` holds, when connecting fails, when
 * the upstream breaks off before it answers or does not answer in time. Throws CelError for expressions that cannot be used.
 */
function prepare(config: Retry, cel: CelEnvironment): () => PolicyHooks {
  const precondition =
    config.precondition === undefined ? undefined : cel.compileCondition(config.precondition, "request");
  const plan: RetryPlan = {
    attempts: config.attempts,
    backoff: config.backoff,
    namesMethods: precondition !== undefined && readsMethod(precondition),
    codes: new Set(config.codes),
    condition: config.condition === undefined ? undefined : cel.compileCondition(config.condition, "response"),
  };
  return () => ({
    onRequest(context) {
      if (precondition === undefined || precondition.matches(context.variables, doNotRepeat)) context.retry = plan;
      else context.trace?.skipped(KIND, "precondition not met");
      return undefined;
    },
  });
}
