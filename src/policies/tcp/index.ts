import type { BackendTcp } from "../../upstream/settings.ts";
import { definePolicy } from "../policy.ts";
import { withDurations } from "../shared/shown-durations.ts";

/** Sockets to a backend (reference 3.23): a setting of its connections, which the pool makes. */
export const tcp = definePolicy({
  kind: "tcp",
  phases: ["backend"],
  traceStage: "tcp",
  prepare: () => () => ({}),
  redact,
});

/** The configuration with its times as texts. */
export function redact({ keepalives, ...config }: BackendTcp): unknown {
  return {
    ...withDurations(config, "connectTimeout"),
    ...(keepalives !== undefined && { keepalives: withDurations(keepalives, "time", "interval") }),
  };
}
