import type { CompiledPolicy } from "../types.ts";

/** Requests with the same value go to the same endpoint (reference 3.27); the choice of the endpoint goes by it. */
export function create(): CompiledPolicy {
  return { kind: "sessionAffinity" };
}
