import { type CelEnvironment, CelError } from "../../cel/index.ts";
import type { Health } from "../../upstream/settings.ts";
import { definePolicy } from "../policy.ts";
import { withDurations } from "../shared/shown-durations.ts";

export const health = definePolicy({
  kind: "health",
  phases: ["backend"],
  traceStage: "health",
  prepare,
  redact: ({ eviction, ...others }) => ({
    ...others,
    ...(eviction !== undefined && { eviction: withDurations(eviction, "duration") }),
  }),
});

/**
 * Says which calls have failed and when endpoints are evicted (reference 3.26); the balancer and the call go by it. Throws
 * CelError for an expression that cannot be used.
 */
function prepare(config: Health, cel: CelEnvironment): () => Record<string, never> {
  const { unhealthyExpression: text } = config;
  if (text !== undefined) {
    const { reads } = cel.compileCondition(text, "response");
    if (reads.has("response.body") || reads.has("response.bodyPrefix"))
      throw new CelError(
        "the health of an endpoint is told by the head of a response: leave out response.body",
        text,
        0,
      );
  }
  return () => ({});
}
