import type { BackendTls } from "../../tls/tls-settings.ts";
import { REDACTED } from "../../trace/redaction.ts";
import { definePolicy } from "../policy.ts";

/** TLS to a backend (reference 3.21): a setting of its connections, which the pool makes. */
export const backendTLS = definePolicy({
  kind: "backendTLS",
  phases: ["backend"],
  traceStage: "tls",
  traceKey: "backendTls",
  prepare: () => () => ({}),
  redact,
});

/** The configuration without its key. */
export function redact(config: BackendTls): BackendTls {
  return config.key === undefined ? config : { ...config, key: REDACTED };
}
