import type { CallObserver } from "../../upstream/callout.ts";
import type { OnCancel } from "../../upstream/on-cancel.ts";
import type { Asker, OutboundScope, OutboundTrace, PolicyContext } from "../types.ts";

interface CallFor {
  readonly onCancel: OnCancel;
  readonly observer: CallObserver | undefined;
  readonly asker: Asker;
}

/** A call for an exchange, which is given up when that is over; its events carry `scope`. */
export function callFor(context: PolicyContext, scope: OutboundScope): CallFor {
  return {
    onCancel: (callback) => context.onOver(callback),
    observer: observerOf(context, scope),
    asker: askerOf(context, scope),
  };
}

/** The same where something else says when the call is given up. */
export function askerOf(context: PolicyContext, scope: OutboundScope): Asker {
  const { findings, trace, span } = context;
  return {
    findings,
    trace: trace?.within(scope),
    span,
    get variables() {
      return context.variables;
    },
  };
}

/** Who is told of a call: whoever watches the request, and its span. */
export function observerOf(
  { trace, span }: Pick<Asker, "trace" | "span">,
  scope: OutboundScope,
): OutboundTrace | undefined {
  const shown = trace?.outbound(scope);
  const recorded = span?.outbound(scope);
  if (shown === undefined || recorded === undefined) return shown ?? recorded;
  return {
    ...(recorded.traceparent !== undefined && { traceparent: recorded.traceparent }),
    started(target) {
      shown.started(target);
      recorded.started(target);
    },
    ended(status, error) {
      shown.ended(status, error);
      recorded.ended(status, error);
    },
  };
}
