import { REDACTED } from "../src/base/redaction.ts";
import type { RecordAnswer, RequestRecord } from "../src/recorder/records.ts";
import { groupsOf } from "../src/report/recorded.ts";
import { literal } from "./filter.ts";

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
 * An expression for which requests like one are true when they arrive: with its method, host and path, as its route is chosen only later.
 * Undefined for connections and sessions, which no expression sees.
 */
export function expressionLike({ method, host, path, kind, cut }: RequestRecord): string | undefined {
  if (method === undefined || kind !== undefined) return undefined;
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
