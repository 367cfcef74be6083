import { REDACTED } from "../../trace/redaction.ts";
import type { BackendTunnel } from "../../upstream/settings.ts";
import { redact as shownTls } from "../backend-tls/index.ts";
import { definePolicy } from "../policy.ts";

/** A proxy on the way to a backend (reference 3.23): a setting of its connections, which the pool makes. */
export const backendTunnel = definePolicy({
  kind: "backendTunnel",
  phases: ["backend"],
  traceStage: "tunnel",
  traceKey: "tunnel",
  prepare: () => () => ({}),
  redact,
});

/** The configuration without its secrets. */
export function redact(config: BackendTunnel): BackendTunnel {
  return {
    ...config,
    ...(config.authorization !== undefined && { authorization: REDACTED }),
    ...(config.tls !== undefined && { tls: shownTls(config.tls) }),
  };
}
