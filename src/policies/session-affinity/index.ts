import type { SessionAffinity } from "../../upstream/settings.ts";
import { definePolicy } from "../policy.ts";

/** Requests with the same value go to the same endpoint (reference 3.27); the choice of the endpoint goes by it. */
export const sessionAffinity = definePolicy({
  kind: "sessionAffinity",
  phases: ["backend"],
  traceStage: "session affinity",
  prepare: (_config: SessionAffinity) => () => ({}),
  redact: (config) => config,
});
