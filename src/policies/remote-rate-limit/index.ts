/**
 * `remoteRateLimit`: asks a rate limit service over gRPC (Envoy's `envoy.service.ratelimit.v3`,
 * docs/policies/remote-rate-limit.md), so that several gateways share their counts. In: descriptors, computed from the request by
 * CEL. Out: the request continues with the header fields that the service adds; or 429 with the service's body, or
 * TG_RATE_LIMITED. If the service fails, the request ends with TG_RATE_LIMIT_SERVICE or, with `failOpen`, is not limited. The
 * response tells the client how much is left.
 */
import type { ErrorAnswer, ErrorCode } from "../../base/errors.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import { CelError } from "../../cel/index.ts";
import type {
  RateLimitResponse,
  RateLimitResponse_Code,
  RateLimitResponse_DescriptorStatus,
} from "../../gen/envoy/service/ratelimit/v3/rls_pb.ts";
import { decimal } from "../../http/message/message.ts";
import { type Callout, reasonOf } from "../../upstream/callouts/callout.ts";
import { redactCalling } from "../calls/redact.ts";
import { applied, Decisions, rejected, unable } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { type HeaderEdit, NO_PSEUDO } from "../contract/header-edits.ts";
import type { CalloutContext, PolicyContext, PolicyHooks } from "../contract/types.ts";
import { defineConditionalPolicy } from "../define/policy.ts";
import {
  editRequest,
  type HeaderInstruction,
  headerEdits,
  type InvalidTarget,
  invalidTarget,
  replyHeaders,
} from "../envoy/convert.ts";
import { envoyMethods } from "../envoy/load-methods.ts";
import { callFor, continueOrReject, type ServiceFailed, serviceFailed } from "../shared/call-for.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import { REQUEST_PSEUDO } from "../transformations/messages.ts";
import { type Descriptor, DescriptorMaker } from "./descriptors.ts";
import type { RemoteRateLimit } from "./schema.ts";

const KIND = "remoteRateLimit";

type RateLimitDecision =
  | { readonly code: "noDescriptor" }
  | { readonly code: "descriptorLeftOut" | "descriptorFailed"; readonly why: string }
  | { readonly code: "allowed" | "limited"; readonly descriptors: number }
  | ServiceFailed
  | InvalidTarget;

const decisions = new Decisions<RateLimitDecision>(KIND, {
  noDescriptor: () => unable("no descriptor could be made, so the request is not limited"),
  descriptorLeftOut: ({ why }) => unable(`a descriptor is left out: ${why}`),
  descriptorFailed: ({ why }) => rejected(`a descriptor cannot be made: ${why}`, { result: "failed", error: why }),
  failed: serviceFailed("failOpen lets the request pass"),
  allowed: ({ descriptors }) =>
    applied(`the service admits the request; descriptors sent: ${descriptors}`, { result: "allowed", descriptors }),
  limited: ({ descriptors }) =>
    rejected(`the service says that a limit is exceeded; descriptors sent: ${descriptors}`, {
      result: "limited",
      descriptors,
    }),
  invalidTarget,
});

export const remoteRateLimit = defineConditionalPolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare,
  redact: redactCalling,
});

const FAILED: ErrorCode = "TG_RATE_LIMIT_SERVICE";
/** `overall_code`, and the `code` of each limit. */
const OVER_LIMIT: RateLimitResponse_Code = 2;

/** Compiles the descriptors. Throws CelError for expressions that do not compile. */
function prepare(config: RemoteRateLimit, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const makers = config.descriptors.map((descriptor) => new DescriptorMaker(descriptor, cel));
  return ({ callouts }) => {
    const callout = callouts(config.target, config.policies);
    return {
      onRequest: afterRequestBody(
        makers.flatMap(({ expressions }) => expressions),
        (context) => {
          const descriptors = makeAll(makers, context, config.failureMode === "failOpen");
          if (descriptors.length === 0) {
            context.trace?.report(decisions, { code: "noDescriptor" });
            return undefined;
          }
          return limit(config, callout, descriptors, context);
        },
      ),
    };
  };
}

/**
 * The descriptors of one request. One whose expression reads a missing value is omitted, as in Envoy; any other failure rejects
 * with TG_RATE_LIMIT_SERVICE unless the policy fails open.
 */
function makeAll(makers: readonly DescriptorMaker[], context: PolicyContext, failOpen: boolean): Descriptor[] {
  const descriptors: Descriptor[] = [];
  for (const maker of makers) {
    try {
      descriptors.push(maker.make(context));
    } catch (error) {
      // Otherwise a client could evade the limit with a value that makes the expression fail.
      const why = reasonOf(error);
      if (!(error instanceof CelError && error.absent) && !failOpen)
        throw decisions.reject(context.trace, { code: "descriptorFailed", why }, FAILED);
      context.trace?.report(decisions, { code: "descriptorLeftOut", why });
    }
  }
  return descriptors;
}

/** Calls the service and applies its decision. Throws TG_RATE_LIMITED for a limited request. */
async function limit(
  { domain, failureMode, timeout }: RemoteRateLimit,
  callout: Callout<CalloutContext>,
  descriptors: Descriptor[],
  context: PolicyContext,
): Promise<undefined> {
  let answer: RateLimitResponse;
  try {
    const { shouldRateLimit } = await envoyMethods();
    const question = shouldRateLimit.encode({ domain, descriptors });
    // A limit that is exceeded stays exceeded, even if the call fails after saying so.
    const exceeded = (message: Uint8Array): boolean => shouldRateLimit.decode(message).overallCode === OVER_LIMIT;
    const call = callFor(context, "rate_limit");
    const bytes = await callout.unary(shouldRateLimit.path, question, timeout, exceeded, call);
    answer = shouldRateLimit.decode(bytes);
  } catch (error) {
    continueOrReject(context, decisions, error, failureMode === "failOpen", FAILED);
    return undefined;
  }
  const toClient = [
    ...limitHeaders(answer.statuses),
    ...headerEdits(asOptions(answer.responseHeadersToAdd), "set", NO_PSEUDO),
  ];
  const sent = descriptors.length;
  if (answer.overallCode === OVER_LIMIT)
    throw decisions.reject(
      context.trace,
      { code: "limited", descriptors: sent },
      "TG_RATE_LIMITED",
      rejection(answer, toClient),
    );
  context.trace?.report(decisions, { code: "allowed", descriptors: sent });
  editRequest(context, headerEdits(asOptions(answer.requestHeadersToAdd), "set", REQUEST_PSEUDO), decisions);
  for (const edit of toClient) context.editResponse(edit);
  return undefined;
}

/** The protocol has plain header values here, without append actions. */
function asOptions(headers: RateLimitResponse["responseHeadersToAdd"]): HeaderInstruction[] {
  return headers.map((header) => ({ header }));
}

/** The 429. The service's own Retry-After wins over the one derived from its limits. */
function rejection(
  { statuses, rawBody }: RateLimitResponse,
  edits: readonly HeaderEdit[],
): Pick<ErrorAnswer, "headers" | "body"> {
  const waits = statuses.filter(({ code }) => code === OVER_LIMIT).map(secondsUntilReset);
  const retry = waits.length > 0 ? Math.max(...waits) : 0;
  const own = retry > 0 && !edits.some(({ name }) => name === "retry-after");
  const headers = replyHeaders([...edits, ...(own ? [set("retry-after", retry)] : [])]);
  // Without a body from the service, the response is the same as for local limits.
  return { headers, ...(rawBody.length > 0 && { body: rawBody }) };
}

/** `x-ratelimit-*` of the limit with the fewest requests left. */
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

/** Whole seconds, rounded up, so that a client does not return too early. */
function secondsUntilReset({ durationUntilReset: left }: RateLimitResponse_DescriptorStatus): number {
  return Number(left?.seconds ?? 0) + ((left?.nanos ?? 0) > 0 ? 1 : 0);
}

function set(name: string, value: number): HeaderEdit {
  return { action: "set", name, value: decimal(value) };
}
