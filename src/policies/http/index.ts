import type { BackendHttp } from "../../upstream/settings.ts";
import { withDurations } from "../shared/shown-durations.ts";
import type { CompiledPolicy } from "../types.ts";

/** How HTTP is spoken with a backend (reference 3.23); `requestTimeout` replaces that of the route. */
export function create(config: BackendHttp): CompiledPolicy {
  const { requestTimeout } = config;
  return {
    kind: "http",
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
