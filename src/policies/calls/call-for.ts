import type { CallObserver } from "../../upstream/callout.ts";
import type { OnCancel } from "../../upstream/on-cancel.ts";
import type { Asker, PolicyContext } from "../types.ts";

interface CallFor {
  readonly onCancel: OnCancel;
  readonly observer: CallObserver | undefined;
  readonly asker: Asker;
}

/** A call for an exchange, which is given up when that is over; its events carry `scope`. */
export function callFor(context: PolicyContext, scope: string): CallFor {
  const { findings, trace } = context;
  return {
    onCancel: (callback) => context.onOver(callback),
    observer: trace?.outbound(scope),
    asker: { findings, trace: trace?.within(scope) },
  };
}
