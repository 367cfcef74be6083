import type { BackendHttp } from "../../upstream/settings.ts";
import { definePolicy } from "../policy.ts";
import { withDurations } from "../shared/shown-durations.ts";
import type { PolicyHooks } from "../types.ts";

export const http = definePolicy({
  kind: "http",
  phases: ["backend"],
  traceStage: "http",
  prepare: (config: BackendHttp) => () => hooksOf(config),
  redact,
});

/** How HTTP is spoken with a backend (reference 3.23); `requestTimeout` replaces that of the route. */
function hooksOf({ requestTimeout }: BackendHttp): PolicyHooks {
  return {
    ...(requestTimeout !== undefined && {
      onRequest(context) {
        context.backendRequestTimeout = requestTimeout;
        return undefined;
      },
    }),
  };
}

/** The configuration with its times as texts. */
export function redact(config: BackendHttp): unknown {
  return withDurations(config, "requestTimeout");
}
