import type { BackendTcp } from "../../upstream/settings.ts";
import { withDurations } from "../shared/shown-durations.ts";
import type { CompiledPolicy } from "../types.ts";

/** Sockets to a backend (reference 3.23): a setting of its connections, which the pool makes. */
export function create(): CompiledPolicy {
  return { kind: "tcp" };
}

/** The configuration with its times as texts. */
export function redact({ keepalives, ...config }: BackendTcp): unknown {
  return {
    ...withDurations(config, "connectTimeout"),
    ...(keepalives !== undefined && { keepalives: withDurations(keepalives, "time", "interval") }),
  };
}
