import { type Milliseconds, ms, withDurations } from "../../base/durations.ts";
import { definePolicy } from "../policy.ts";
import { PolicyError } from "../policy-error.ts";
import type { PolicyHooks } from "../types.ts";
import type { Timeout } from "./schema.ts";

const KIND = "timeout";

export const timeout = definePolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "timeout",
  prepare,
  redact,
});

/**
 * Bounds the time until response headers arrive (reference 3.17): `requestTimeout` from the start of the request over all
 * attempts, `backendRequestTimeout` for each attempt. Milliseconds; 0 = none. Throws for numbers that no timer can hold.
 */
function prepare(config: Timeout): () => PolicyHooks {
  const requestTimeout = checked("requestTimeout", config.requestTimeout);
  const backendRequestTimeout = checked("backendRequestTimeout", config.backendRequestTimeout);
  const details = redact(config);
  return () => ({
    onRequest(context) {
      context.requestTimeout = requestTimeout;
      context.backendRequestTimeout = backendRequestTimeout;
      context.trace?.applied(KIND, details);
      return undefined;
    },
  });
}

/** The longest delay of a timer; a longer one would fire at once. */
const MAX_DELAY = 2 ** 31 - 1;

function checked(field: string, value = ms(0)): Milliseconds {
  if (!(value >= 0 && value <= MAX_DELAY)) throw PolicyError.at([field], "use a duration from 0 to 24 days (576h)");
  return value;
}

/** The configuration with its times as texts. */
function redact(config: Timeout): unknown {
  return withDurations(config, "requestTimeout", "backendRequestTimeout");
}
