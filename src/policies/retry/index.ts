/**
 * `retry`: further attempts after a failed one (docs/policies/retry.md). In: how many attempts, after which backoff, on which
 * statuses or expressions. Out: a plan that the exchange follows in its retry loop; this policy itself never waits or sends.
 *
 * The plan covers the statuses in `codes`, gRPC statuses in `grpcCodes` up to the first message, responses for which `condition`
 * is true, failed connections, and upstreams that close before they respond or exceed `backendRequestTimeout`. Only requests
 * whose body is still held can be sent again.
 */
import { withDurations } from "../../base/durations.ts";
import { GRPC_CODES } from "../../base/grpc-codes.ts";
import { type CelEnvironment, type Expression, readsBody } from "../../cel/index.ts";
import { Decisions, skipped } from "../contract/decisions.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { PolicyHooks, RetryPlan } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { afterRequestBody, type BodyUnknown, bodyIfShort, bodyUnknown } from "../shared/expressions.ts";
import type { Retry } from "./schema.ts";

const KIND = "retry";

const decisions = new Decisions<{ readonly code: "notMet" } | BodyUnknown>(KIND, {
  notMet: () => skipped("the precondition is not true, so no failure is retried"),
  bodyUnknown,
});

export const retry = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare,
  redact: (config) => withDurations(config, "backoff"),
});

/**
 * Whether the precondition decides by method. Then a timed-out attempt is retried whatever its method; otherwise only if the method
 * is idempotent (RFC 9110, section 9.2.2). Throws CelError for a precondition that does not compile.
 */
export function namesMethods({ precondition }: Retry, cel: CelEnvironment): boolean {
  return precondition !== undefined && readsMethod(cel.compileCondition(precondition, "request"));
}

function readsMethod({ reads }: Expression): boolean {
  return reads.has("request.method");
}

function grpcCodesOf({ grpcCodes = [] }: Retry): ReadonlySet<number> | undefined {
  return grpcCodes.length === 0 ? undefined : new Set(grpcCodes.map((name) => GRPC_CODES[name]));
}

/** A precondition that fails allows no retries: a repeated request is worse than a failed one. */
const doNotRepeat = (): boolean => false;

/** Compiles the plan once; requests share it. Throws CelError or PolicyError for expressions that cannot be used. */
function prepare(config: Retry, cel: CelEnvironment): () => PolicyHooks {
  const precondition =
    config.precondition === undefined ? undefined : cel.compileCondition(config.precondition, "request");
  const condition = config.condition === undefined ? undefined : cel.compileCondition(config.condition, "response");
  const expressions = [precondition, condition].filter((each) => each !== undefined);
  if (condition !== undefined && readsBody(condition, "response"))
    throw PolicyError.at(["condition"], "cannot read the body of the response; use its status or headers");
  const plan: RetryPlan = {
    attempts: config.attempts,
    backoff: config.backoff,
    namesMethods: precondition !== undefined && readsMethod(precondition),
    codes: new Set(config.codes),
    grpcCodes: grpcCodesOf(config),
    condition,
    otherBackends: config.otherBackends === true,
  };
  const onRequest = afterRequestBody(
    expressions,
    (context) => {
      if (precondition === undefined || precondition.matches(context.variables, doNotRepeat)) context.retry = plan;
      else context.trace?.report(decisions, { code: "notMet" });
      return undefined;
    },
    (context) => bodyIfShort(context, decisions),
  );
  return () => ({ onRequest });
}
