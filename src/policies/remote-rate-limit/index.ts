import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import { CelError } from "../../cel/index.ts";
import type { LocalReply } from "../../http/message.ts";
import { type Callout, reasonOf } from "../../upstream/callout.ts";
import { callFor } from "../calls/call-for.ts";
import type { PolicyDeps } from "../deps.ts";
import { editRequest, headerEdits, replyHeaders } from "../envoy/headers.ts";
import {
  type Descriptor,
  type LimitStatus,
  OVER_LIMIT,
  RateLimitRequest,
  RateLimitResponse,
  SHOULD_RATE_LIMIT,
} from "../envoy/rate-limit.ts";
import type { RemoteRateLimit } from "../policy-set.ts";
import { afterWholeBody } from "../shared/bodies.ts";
import type { HeaderEdit } from "../shared/header-edits.ts";
import { refuse } from "../shared/refusal.ts";
import type { CalloutContext, CompiledPolicy, PolicyContext } from "../types.ts";
import { DescriptorMaker } from "./descriptors.ts";

const KIND = "remoteRateLimit";
const FAILED: ErrorCode = "TG_RATE_LIMIT_SERVICE";

/**
 * Asks a rate limit service whether the request is within its limits (reference 3.2). The answer to the client says how much
 * is left. Throws CelError for expressions that cannot be used.
 */
export function create(config: RemoteRateLimit, { callouts }: PolicyDeps): CompiledPolicy {
  const callout = callouts(config.target, config.policies);
  const makers = config.descriptors.map((descriptor) => new DescriptorMaker(descriptor));
  return {
    kind: KIND,
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
  descriptors: readonly Descriptor[],
  context: PolicyContext,
): Promise<LocalReply | undefined> {
  let answer: ReturnType<typeof RateLimitResponse.decode>;
  try {
    const bytes = await callout.unary(
      SHOULD_RATE_LIMIT,
      RateLimitRequest.encode({ domain, descriptors }),
      timeout,
      callFor(context, "rate_limit"),
    );
    answer = RateLimitResponse.decode(bytes);
  } catch (error) {
    const outcome = { result: "failed", error: reasonOf(error) };
    if (failureMode === "failOpen") {
      context.trace?.failed(KIND, outcome);
      return undefined;
    }
    context.trace?.decided(KIND, false, outcome);
    throw new GatewayError(FAILED, undefined, new Error(reasonOf(error)));
  }
  const limited = answer.overall_code === OVER_LIMIT;
  context.trace?.decided(KIND, !limited, { result: limited ? "limited" : "allowed", descriptors: descriptors.length });
  const toClient = [
    ...limitHeaders(answer.statuses ?? []),
    ...headerEdits(asOptions(answer.response_headers_to_add), "set"),
  ];
  if (limited) return reply(context, answer, toClient);
  editRequest(context, headerEdits(asOptions(answer.request_headers_to_add), "set"));
  for (const edit of toClient) context.editResponse(edit);
  return undefined;
}

function asOptions(headers: readonly { readonly key?: string; readonly value?: string }[] | undefined) {
  return headers?.map((header) => ({ header }));
}

function reply(
  { request }: PolicyContext,
  { statuses = [], raw_body }: ReturnType<typeof RateLimitResponse.decode>,
  edits: readonly HeaderEdit[],
): LocalReply {
  const waits = statuses.filter(({ code }) => code === OVER_LIMIT).map(secondsUntilReset);
  const retry = waits.length > 0 ? Math.max(...waits) : 0;
  const own = retry > 0 && !edits.some(({ name }) => name === "retry-after");
  const headers = replyHeaders([...edits, ...(own ? [set("retry-after", retry)] : [])]);
  const body = raw_body ?? new Uint8Array(0);
  // Without a body of the service the gateway answers as for its own limits.
  if (body.length === 0) throw new GatewayError("TG_RATE_LIMITED", undefined, undefined, { headers });
  return refuse(request, { status: 429, headers, body, reason: "RateLimit" }, "TG_RATE_LIMITED");
}

/** `x-ratelimit-*` of the limit that leaves least. */
function limitHeaders(statuses: readonly LimitStatus[]): HeaderEdit[] {
  const [tightest] = statuses
    .filter(({ current_limit }) => current_limit !== undefined)
    .sort((a, b) => (a.limit_remaining ?? 0) - (b.limit_remaining ?? 0));
  if (tightest === undefined) return [];
  return [
    set("x-ratelimit-limit", tightest.current_limit?.requests_per_unit ?? 0),
    set("x-ratelimit-remaining", tightest.limit_remaining ?? 0),
    set("x-ratelimit-reset", secondsUntilReset(tightest)),
  ];
}

function secondsUntilReset({ duration_until_reset: left }: LimitStatus): number {
  return (left?.seconds ?? 0) + ((left?.nanos ?? 0) > 0 ? 1 : 0);
}

function set(name: string, value: number): HeaderEdit {
  return { action: "set", name, value: String(value) };
}
