import type { BackendTls } from "../../ir/policies.ts";
import { REDACTED } from "../../trace/redaction.ts";
import type { CompiledPolicy } from "../types.ts";

/** TLS to a backend (reference 3.21): a setting of its connections, which the pool makes. */
export function create(config: BackendTls): CompiledPolicy {
  return { kind: "backendTLS", shown: shown(config) };
}

/** The configuration without its key. */
export function shown(config: BackendTls): BackendTls {
  return config.key === undefined ? config : { ...config, key: REDACTED };
}
