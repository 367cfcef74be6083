import type { BackendTls } from "../../tls/tls-settings.ts";
import { REDACTED } from "../../trace/redaction.ts";
import type { CompiledPolicy } from "../types.ts";

/** TLS to a backend (reference 3.21): a setting of its connections, which the pool makes. */
export function create(): CompiledPolicy {
  return { kind: "backendTLS" };
}

/** The configuration without its key. */
export function redact(config: BackendTls): BackendTls {
  return config.key === undefined ? config : { ...config, key: REDACTED };
}
