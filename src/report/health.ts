/** The health of endpoints as people read it, on a terminal or a page. */
import type { EvictionCause, HealthChange } from "../telemetry/health-history.ts";
import type { ProbeResult, ProbeSent } from "../telemetry/probe-result.ts";
import { durationText } from "./recorded.ts";

/** What is known of an endpoint that gets no requests. */
interface EndpointHealth {
  readonly state: string;
  readonly evicted?: { readonly until: number; readonly cause?: EvictionCause };
  readonly check?: { readonly reason?: string };
  readonly name?: { readonly error?: string };
  readonly backup?: boolean;
  readonly behind?: string;
}

/** The state of an endpoint; if replicas disagree, with those that see it: `evicted at web-1`. */
export function stateText({
  state,
  stateAt,
}: Pick<EndpointHealth, "state"> & { readonly stateAt?: readonly string[] }): string {
  return stateAt === undefined ? state : `${state} at ${stateAt.join(", ")}`;
}

/** Why an endpoint gets no requests, or only in place of others. Empty if it gets some, or if service discovery keeps them from it. */
export function whyText({ state, evicted, check, name, backup, behind = "" }: EndpointHealth): string {
  if (state === "unhealthy") return check?.reason ?? "";
  if (state === "unresolved") return name?.error ?? "";
  if (evicted === undefined) return backup === true ? "backup" : behind;
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

/** What a probe sent: `GET /healthz`. */
export function sentText(sent: ProbeSent): string {
  switch (sent.type) {
    case "http":
      return `GET ${sent.path}${sent.host === undefined ? "" : ` for ${sent.host}`}`;
    case "grpc":
      return `grpc.health.v1.Health/Check${sent.service === "" ? "" : ` of ${sent.service}`}`;
    case "tcp":
      return "a connection";
    case "tls":
      return "a TLS handshake";
  }
}

/** The result of a probe: `status 503`; without a status, that a connection was made, or why not. */
export function foundText({ status, healthy, reason = "" }: ProbeResult): string {
  if (status === undefined) return healthy ? "connected" : reason;
  return typeof status === "number" ? `status ${status}` : status;
}

/** How many of the endpoints of a backend were not probed. Several replicas may have probed the same one. */
export function notProbed(endpoints: number, probes: readonly ProbeResult[]): number {
  return Math.max(0, endpoints - new Set(probes.map(({ address }) => address)).size);
}

/** Why a probe has no results. */
export const NOTHING_PROBED = "no endpoint to probe: no route leads to one, or the configuration names none";

/** The time of day in UTC, as in logs; `at`: ms since the epoch. */
export function timeText(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

function joined(what: string, cause: EvictionCause | undefined): string {
  return cause === undefined ? what : `${what}, failures in a row: ${cause.consecutiveFailures}`;
}
