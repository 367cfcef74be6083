import { CelError } from "../../cel/index.ts";
import type { Health } from "../../upstream/settings.ts";
import type { PolicyDeps } from "../deps.ts";
import { withDurations } from "../shared/shown-durations.ts";
import type { CompiledPolicy } from "../types.ts";

/**
 * Says which calls have failed and when endpoints are evicted (reference 3.26); the balancer and the call go by it. Throws
 * CelError for an expression that cannot be used.
 */
export function create(config: Health, { cel }: PolicyDeps): CompiledPolicy {
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
  return { kind: "health" };
}

/** The configuration with its times as texts. */
export function redact({ eviction, ...others }: Health): unknown {
  return { ...others, ...(eviction !== undefined && { eviction: withDurations(eviction, "duration") }) };
}
