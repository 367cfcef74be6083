import { addAbortListener } from "node:events";
import type { Fetch } from "../upstream/callouts/fetch.ts";

/** Calls that an abort ends: their connections are closed, and they reject. A call that is only cancelled never settles. */
export function endedBy(signal: AbortSignal, fetch: Fetch): Fetch {
  return async (url, request) => {
    signal.throwIfAborted();
    const cancels: (() => void)[] = [];
    const ended = Promise.withResolvers<never>();
    using _ended = addAbortListener(signal, () => {
      for (const cancel of cancels) cancel();
      ended.reject(signal.reason);
    });
    return await Promise.race([fetch(url, request, (cancel) => cancels.push(cancel)), ended.promise]);
  };
}
