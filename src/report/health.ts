/** The health of endpoints as people read it, on a terminal or a page. */
import type { EvictionCause, HealthChange } from "../telemetry/health-history.ts";
import { durationText } from "./recorded.ts";

/** What is known of an endpoint that gets no requests. */
interface EndpointHealth {
  readonly state: string;
  readonly evicted?: { readonly until: number; readonly cause?: EvictionCause };
  readonly check?: { readonly reason?: string };
}

/** Why an endpoint gets no requests; empty if it gets some, or if service discovery says so. */
export function whyText({ state, evicted, check }: EndpointHealth): string {
  if (state === "unhealthy") return check?.reason ?? "";
  if (evicted === undefined) return "";
  return joined(`until ${timeText(evicted.until)}`, evicted.cause);
}

/** What happened to an endpoint: `evicted for 30.0s, failures in a row: 5`. */
export function changeText(change: HealthChange): string {
  switch (change.state) {
    case "evicted":
      return joined(`evicted for ${durationText(change.forMs)}`, change.cause);
    case "unhealthy":
      return `unhealthy: ${change.reason}`;
    case "healthy":
      return "healthy";
  }
}

/** The time of day in UTC, as in logs; `at`: ms since the epoch. */
export function timeText(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

function joined(what: string, cause: EvictionCause | undefined): string {
  return cause === undefined ? what : `${what}, failures in a row: ${cause.consecutiveFailures}`;
}
