import { REDACTED } from "../src/base/redaction.ts";
import type { RecordAnswer, RequestRecord } from "../src/recorder/records.ts";
import { groupsOf } from "../src/report/recorded.ts";
import { literal } from "./filter.ts";
import { hashOf } from "./place.ts";

/** A filter of records that ended as one did: at the same route, with the same status, for the same reason. */
export function whereLike({ route, status, reason, decider, error }: RequestRecord): string {
  return [
    // Empty in expressions if no route was chosen.
    `route == ${literal(route ?? "")}`,
    `response.code == ${literal(status)}`,
    `reason == ${literal(reason)}`,
    ...(error === undefined ? [] : [`error == ${literal(error)}`]),
    ...(decider?.policy === undefined ? [] : [`policy == ${literal(decider.policy)}`]),
  ].join(" && ");
}

/** Records that are counted at most. */
export const MOST_ALIKE = 1000;

/** How many requests that filter has found, and how many of them are kept: `about 212 like this in the last 15 minutes (41 kept)`. */
export function alikeText({ records, found, requests }: RecordAnswer, period: string): string {
  // Records count those like them that were not kept.
  const counted = groupsOf(records, requests).reduce((sum, { count }) => sum + count, 0);
  const kept = records.filter((record) => record.kept === true).length;
  const ofKept = found > records.length ? "" : ` (${kept} kept)`;
  return `about ${Math.max(found, counted)} like this in the last ${period}${ofKept}`;
}

/**
 * The place that traces the next request like a recorded one: with its method, host, path and route. With `anyPath`, only the route must be the
 * same. Undefined for connections and sessions, which no expression sees; with `anyPath`, also for requests without a route.
 */
export function traceHash(record: RequestRecord, anyPath = false): string | undefined {
  const { method, kind, route = "" } = record;
  if (method === undefined || kind !== undefined || (anyPath && route === "")) return undefined;
  return hashOf("/trace", { expression: anyPath ? "" : expressionLike(method, record), route });
}

function expressionLike(method: string, { host, path, cut }: RequestRecord): string {
  // A secret in the path, or the end of a long one, is not recorded.
  const [known = ""] = path.split(REDACTED);
  const isWhole = known === path && cut === undefined;
  return [
    `request.method == ${literal(method)}`,
    // Recorded in lower case and without the port.
    ...(host === undefined ? [] : [`request.host.lowerAscii().startsWith(${literal(host)})`]),
    isWhole ? `request.path == ${literal(path)}` : `request.path.startsWith(${literal(known)})`,
  ].join(" && ");
}
