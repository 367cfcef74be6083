import type { CallObserver } from "../../upstream/call.ts";
import type { OnCancel } from "../../upstream/upstream.ts";
import type { CalloutContext, OutboundScope, OutboundTrace, PolicyContext } from "../types.ts";

interface CallFor {
  readonly onCancel: OnCancel;
  readonly observer: CallObserver | undefined;
  readonly calloutContext: CalloutContext;
}

/** A call for an exchange, which is given up when that is over; its events carry `scope`. */
export function callFor(context: PolicyContext, scope: OutboundScope): CallFor {
  return {
    onCancel: (callback) => context.onClose(callback),
    observer: observerOf(context, scope),
    calloutContext: calloutContextOf(context, scope),
  };
}

/** The same where something else says when the call is given up. */
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

/** Who is told of a call: whoever watches the request, and its span. */
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
