import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { CelError } from "../../cel/index.ts";
import type {
  RateLimitResponse,
  RateLimitResponse_Code,
  RateLimitResponse_DescriptorStatus,
} from "../../gen/envoy/service/ratelimit/v3/rls_pb.ts";
import type { LocalReply } from "../../http/message.ts";
import { decimal } from "../../http/message.ts";
import { type Callout, reasonOf } from "../../upstream/callout.ts";
import { callFor } from "../calls/call-for.ts";
import { redactCalling } from "../calls/redact.ts";
import type { PolicyDeps } from "../deps.ts";
import { editRequest, type HeaderInstruction, headerEdits, replyHeaders } from "../envoy/convert.ts";
import { envoyMethods } from "../envoy/load-methods.ts";
import { defineConditionalPolicy } from "../policy.ts";
import { afterWholeBody } from "../shared/expressions.ts";
import type { HeaderEdit } from "../shared/header-edits.ts";
import { refuse } from "../shared/refusal.ts";
import type { CalloutContext, PolicyContext, PolicyHooks } from "../types.ts";
import { type Descriptor, DescriptorMaker } from "./descriptors.ts";
import type { RemoteRateLimit } from "./schema.ts";

const KIND = "remoteRateLimit";

export const remoteRateLimit = defineConditionalPolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "remote rate limit",
  alternatives: { refuses: true },
  prepare,
  redact: (config: RemoteRateLimit, hidden) => redactCalling(config, hidden),
});

const FAILED: ErrorCode = "TG_RATE_LIMIT_SERVICE";
/** `overall_code`, and the `code` of each limit. */
const OVER_LIMIT: RateLimitResponse_Code = 2;

/**
 * Asks a rate limit service whether the request is within its limits (reference 3.2). The answer to the client says how much
 * is left. Throws CelError for expressions that cannot be used.
 */
function prepare(config: RemoteRateLimit, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const makers = config.descriptors.map((descriptor) => new DescriptorMaker(descriptor, cel));
  return ({ callouts }) => {
    const callout = callouts(config.target, config.policies);
    return {
      onRequest: afterWholeBody(
        makers.flatMap(({ expressions }) => expressions),
        (context) => {
          const descriptors = makeAll(makers, context, config.failureMode === "failOpen");
          if (descriptors.length === 0) {
            context.trace?.skipped(KIND, "no descriptor could be made", "warn");
            return undefined;
          }
          return limit(config, callout, descriptors, context);
        },
      ),
    };
  };
}

function makeAll(makers: readonly DescriptorMaker[], context: PolicyContext, failOpen: boolean): Descriptor[] {
  const descriptors: Descriptor[] = [];
  for (const maker of makers) {
    try {
      descriptors.push(maker.make(context));
    } catch (error) {
      // A client must not be able to choose that it is not counted.
      if (!(error instanceof CelError && error.absent) && !failOpen) {
        context.trace?.applied(KIND, { result: "failed", error: reasonOf(error) });
        throw new GatewayError(FAILED, undefined, error);
      }
      context.trace?.skipped(KIND, `a descriptor is left out: ${reasonOf(error)}`, "warn");
    }
  }
  return descriptors;
}

async function limit(
  { domain, failureMode, timeout }: RemoteRateLimit,
  callout: Callout<CalloutContext>,
  descriptors: Descriptor[],
  context: PolicyContext,
): Promise<LocalReply | undefined> {
  let answer: RateLimitResponse;
  try {
    const { shouldRateLimit } = await envoyMethods();
    const question = shouldRateLimit.encode({ domain, descriptors });
    const bytes = await callout.unary(shouldRateLimit.path, question, timeout, callFor(context, "rate_limit"));
    answer = shouldRateLimit.decode(bytes);
  } catch (error) {
    const outcome = { result: "failed", error: reasonOf(error) };
    if (failureMode === "failOpen") {
      context.trace?.failed(KIND, outcome);
      return undefined;
    }
    context.trace?.decided(KIND, false, outcome);
    throw new GatewayError(FAILED, undefined, new Error(reasonOf(error)));
  }
  const limited = answer.overallCode === OVER_LIMIT;
  context.trace?.decided(KIND, !limited, { result: limited ? "limited" : "allowed", descriptors: descriptors.length });
  const toClient = [...limitHeaders(answer.statuses), ...headerEdits(asOptions(answer.responseHeadersToAdd), "set")];
  if (limited) return reply(context, answer, toClient);
  editRequest(context, headerEdits(asOptions(answer.requestHeadersToAdd), "set"));
  for (const edit of toClient) context.editResponse(edit);
  return undefined;
}

function asOptions(headers: RateLimitResponse["responseHeadersToAdd"]): HeaderInstruction[] {
  return headers.map((header) => ({ header }));
}

function reply(
  { request }: PolicyContext,
  { statuses, rawBody: body }: RateLimitResponse,
  edits: readonly HeaderEdit[],
): LocalReply {
  const waits = statuses.filter(({ code }) => code === OVER_LIMIT).map(secondsUntilReset);
  const retry = waits.length > 0 ? Math.max(...waits) : 0;
  const own = retry > 0 && !edits.some(({ name }) => name === "retry-after");
  const headers = replyHeaders([...edits, ...(own ? [set("retry-after", retry)] : [])]);
  // Without a body of the service the gateway answers as for its own limits.
  if (body.length === 0) throw new GatewayError("TG_RATE_LIMITED", undefined, undefined, { headers });
  return refuse(request, { status: 429, headers, body, reason: "RateLimit" }, "TG_RATE_LIMITED");
}

/** `x-ratelimit-*` of the limit that leaves least. */
function limitHeaders(statuses: readonly RateLimitResponse_DescriptorStatus[]): HeaderEdit[] {
  const [tightest] = statuses
    .filter(({ currentLimit }) => currentLimit !== undefined)
    .sort((a, b) => a.limitRemaining - b.limitRemaining);
  if (tightest === undefined) return [];
  return [
    set("x-ratelimit-limit", tightest.currentLimit?.requestsPerUnit ?? 0),
    set("x-ratelimit-remaining", tightest.limitRemaining),
    set("x-ratelimit-reset", secondsUntilReset(tightest)),
  ];
}

function secondsUntilReset({ durationUntilReset: left }: RateLimitResponse_DescriptorStatus): number {
  return Number(left?.seconds ?? 0) + ((left?.nanos ?? 0) > 0 ? 1 : 0);
}

function set(name: string, value: number): HeaderEdit {
  return { action: "set", name, value: decimal(value) };
}
