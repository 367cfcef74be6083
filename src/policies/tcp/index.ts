import type { BackendTcp } from "../../ir/policies.ts";
import type { CompiledPolicy } from "../types.ts";

/** Sockets to a backend (reference 3.23): a setting of its connections, which the pool makes. */
export function create(config: BackendTcp): CompiledPolicy {
  return { kind: "tcp", shown: config };
}
