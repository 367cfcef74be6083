/**
 * `timeout`: deadlines for the response head (docs/policies/timeout.md). In: `requestTimeout` for all attempts together and
 * `backendRequestTimeout` for each. Out: two numbers of the exchange that the proxy turns into timers; an expired one responds
 * with 504, TG_REQUEST_TIMEOUT or TG_UPSTREAM_TIMEOUT. Response bodies are not limited: they may stream for hours.
 */
import { type Milliseconds, ms, withDurations } from "../../base/durations.ts";
import { detailsText } from "../../trace/details.ts";
import { applied, Decisions } from "../contract/decisions.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { Timeout } from "./schema.ts";

const KIND = "timeout";

const decisions = new Decisions<{ readonly code: "set"; readonly timeouts: unknown }>(KIND, {
  set: ({ timeouts }) => applied(detailsText(timeouts), timeouts),
});

export const timeout = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare,
  redact,
});

/**
 * Both are milliseconds, `requestTimeout` from the start of the request; 0 and absent mean no timeout (Gateway API
 * HTTPRouteTimeouts). Throws a PolicyError for values that exceed the range of a timer.
 */
function prepare(config: Timeout): () => PolicyHooks {
  const requestTimeout = checked("requestTimeout", config.requestTimeout);
  const backendRequestTimeout = checked("backendRequestTimeout", config.backendRequestTimeout);
  const timeouts = redact(config);
  return () => ({
    onRequest(context) {
      context.requestTimeout = requestTimeout;
      context.backendRequestTimeout = backendRequestTimeout;
      context.trace?.report(decisions, { code: "set", timeouts });
      return undefined;
    },
  });
}

/** Milliseconds, about 24.8 days: Node.js fires a timer with a longer delay after 1 ms. */
const MAX_DELAY = 2 ** 31 - 1;

function checked(field: string, value = ms(0)): Milliseconds {
  if (!(value >= 0 && value <= MAX_DELAY)) throw PolicyError.at([field], "use a duration from 0 to 24 days (576h)");
  return value;
}

/** The configuration with formatted durations, such as `1m30s`. */
function redact(config: Timeout): unknown {
  return withDurations(config, "requestTimeout", "backendRequestTimeout");
}
