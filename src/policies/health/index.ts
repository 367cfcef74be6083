import type { Health } from "../../ir/policies.ts";
import type { CompiledPolicy } from "../types.ts";

/** Says which calls have failed and when endpoints are evicted (reference 3.26); the balancer and the call go by it. */
export function create(config: Health): CompiledPolicy {
  return { kind: "health", shown: config };
}
