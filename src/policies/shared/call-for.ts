/**
 * What a callout needs of the exchange that it is made for: its end, which cancels the call, and where the call is reported
 * (trace events of a watched request, a span of a sampled one). Also, what a policy does when its call has failed.
 */
import type { ErrorAnswer, ErrorCode } from "../../base/errors.ts";
import { mayBeRejected } from "../../http/loop.ts";
import type { Latin1 } from "../../http/message/message.ts";
import { reasonOf } from "../../upstream/callouts/callout.ts";
import type { CalloutObserver } from "../../upstream/callouts/http-call.ts";
import type { OnCancel } from "../../upstream/connections/upstream.ts";
import { type Decisions, failed, rejected, type Told } from "../contract/decisions.ts";
import type { CalloutContext, OutboundScope, OutboundTrace, PolicyContext } from "../contract/types.ts";

/** Arguments of `Callout.unary`, `stream` and `http`. */
interface CalloutArguments {
  readonly scope: OutboundScope;
  readonly onCancel: OnCancel;
  readonly observer: CalloutObserver | undefined;
  readonly calloutContext: CalloutContext;
  readonly loop: Latin1;
}

/** For a call that is cancelled when its exchange closes. Its trace events carry `scope`. */
export function callFor(context: PolicyContext, scope: OutboundScope): CalloutArguments {
  return {
    scope,
    onCancel: (callback) => context.onCancel(callback),
    observer: observerOf(context, scope),
    calloutContext: calloutContextOf(context, scope),
    loop: context.loop,
  };
}

/**
 * Whether the policy may continue without the service after a failed call, if its `failureMode` says so. Not if the client has claimed so
 * many hops that a gateway on the way rejects the call: it would bypass the service.
 */
export function mayContinueWithout({ loop }: Pick<PolicyContext, "loop">): boolean {
  return !mayBeRejected(loop);
}

/** A decision of policies that call a service: it failed. */
export interface ServiceFailed {
  readonly code: "failed";
  readonly why: string;
  readonly continues: boolean;
}

/** The text of `ServiceFailed`. `open`: the setting that lets the request pass. */
export function serviceFailed(open: string): (decision: ServiceFailed) => Told {
  return ({ why, continues }) => {
    const data = { result: "failed", error: why };
    return continues
      ? failed(`the service failed: ${why}; ${open}`, data)
      : rejected(`the service failed: ${why}`, data);
  };
}

/** Handles a failed call: returns if the policy is `open` and may go on without the service, otherwise throws the error `code`. */
export function continueOrReject(
  context: PolicyContext,
  decisions: Decisions<ServiceFailed>,
  error: unknown,
  open: boolean,
  code: ErrorCode,
  answer?: Partial<ErrorAnswer>,
): void {
  const decision = { code: "failed", why: reasonOf(error), continues: open && mayContinueWithout(context) } as const;
  if (!decision.continues) throw decisions.reject(context.trace, decision, code, answer);
  context.trace?.report(decisions, decision);
}

/** The context of calls that end on their own terms, such as copies of requests. `variables` are computed only if read. */
export function calloutContextOf(context: PolicyContext, scope: OutboundScope): CalloutContext {
  const { requestMetadata, trace, span } = context;
  return {
    requestMetadata,
    trace: trace?.within(scope),
    span,
    get variables() {
      return context.variables;
    },
  };
}

/** The observer of a call: trace, span, both, or none for most requests. */
export function observerOf(
  { trace, span }: Pick<CalloutContext, "trace" | "span">,
  scope: OutboundScope,
): OutboundTrace | undefined {
  const redacted = trace?.outbound(scope);
  const recorded = span?.outbound(scope);
  if (redacted === undefined || recorded === undefined) return redacted ?? recorded;
  return {
    ...(recorded.traceparent !== undefined && { traceparent: recorded.traceparent }),
    started(target) {
      redacted.started(target);
      recorded.started(target);
    },
    ended(status, error) {
      redacted.ended(status, error);
      recorded.ended(status, error);
    },
  };
}
