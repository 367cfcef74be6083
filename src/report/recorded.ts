/** Recorded requests as people read them, on a terminal or a page. */
import { ERRORS } from "../base/errors.ts";
import { formatOrigin } from "../base/origin.ts";
import { recordId } from "../recorder/recorder.ts";
import type { RequestRecord } from "../recorder/records.ts";
import { writtenPolicy } from "../trace/policy-kinds.ts";

/** What decided how a request ended; empty if the backend served it as usual. */
export function decidedBy({ error, status, reason, slow, decider, grpcStatus }: RequestRecord): string {
  const at = decider?.origin === undefined ? "" : `, at ${formatOrigin(decider.origin)}`;
  if (error !== undefined) return `${ERRORS[error].message}${at}`;
  if (reason !== "Upstream") return `${decider?.policy === undefined ? reason : writtenPolicy(decider.policy)}${at}`;
  if (status >= 500) return "the backend";
  if (grpcStatus !== undefined && grpcStatus !== 0) return `the backend: gRPC status ${grpcStatus}`;
  return slow === true ? "slow for its route" : "";
}

/** Finds the record: `0-4711`, and among those of replicas `web-1:0-4711`. */
export function keyOf({ pod, worker, number }: RequestRecord): string {
  return pod === undefined ? recordId(worker, number) : `${pod}:${recordId(worker, number)}`;
}

/** The pod of a replica and the id there, of a key or any other id. */
export function podOfKey(text: string): { readonly pod: string | undefined; readonly id: string } {
  const [, pod, id = text] = /^([a-z\d.-]+):(\d+-\d+)$/.exec(text) ?? [];
  return { pod, id };
}

/** The method; for connections and sessions, their protocol; `-` if the request could not be read. */
export function methodOf({ method, kind, version }: RequestRecord): string {
  // Of a request that could not be read, the method is empty.
  return method || (kind === "unreadable" ? "-" : (version ?? ""));
}

/** Host and path, with `…` if the path was longer than a record has room for. */
export function urlOf({ host = "", path, cut }: RequestRecord): string {
  return `${host}${path}${cut === true ? "…" : ""}`;
}

/** The URL of a request, without its query; undefined for connections and sessions. */
export function urlToSend({ host, path, kind, bind, tls }: RequestRecord): string | undefined {
  if (host === undefined || kind !== undefined) return undefined;
  // 0: the system has chosen the port.
  const [, port = ""] = /\/([1-9]\d*)$/.exec(bind ?? "") ?? [];
  return `${tls === true ? "https" : "http"}://${host.includes(":") || port === "" ? host : `${host}:${port}`}${path}`;
}

/** The status; `-` if no response was sent. */
export function statusOf({ status }: Pick<RequestRecord, "status">): string {
  return status === 0 ? "-" : String(status);
}

/** Milliseconds with three significant digits, in seconds from one second on: `7.35ms`, `123s`. */
export function durationText(duration: number): string {
  return duration >= 1000 ? `${threeDigits(duration / 1000)}s` : `${threeDigits(duration)}ms`;
}

/** How long ago a time (ISO 8601) was, with one unit: `12s`, `3m`, `5h`, `2d`. `now`: epoch ms. */
export function agoText(time: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** With three significant digits, or all of those before the point. */
function threeDigits(value: number): string {
  return value < 100 ? value.toPrecision(3) : value.toFixed(0);
}

/** Requests that ended alike: on the same route, with the same status, for the same reason. */
export interface RequestGroup<Item extends RequestRecord> {
  /** Requests, including those whose records were not kept. */
  readonly count: number;
  /** The part of all requests in the period of the query. */
  readonly share: number;
  readonly status: number;
  readonly route: string | null;
  readonly decidedBy: string;
  /** The newest. */
  readonly example: Item;
}

/** Groups `records` (the newest first); the largest group is first. `total`: requests in the period of the query. */
export function groupsOf<Item extends RequestRecord>(
  records: readonly Item[],
  total: number,
): readonly RequestGroup<Item>[] {
  const groups = Map.groupBy(records, (record) => [record.route, record.status, decidedBy(record)].join("\0"));
  return [...groups.values()]
    .flatMap((group) => {
      const [example] = group;
      if (example === undefined) return [];
      const counted = group.map(({ leftOut = 0, notKept }) => (notKept === true ? 0 : 1 + leftOut));
      // The record that counts the others may be older than this period.
      const count = Math.max(
        group.length,
        counted.reduce((sum, each) => sum + each, 0),
      );
      const { status, route = null } = example;
      return [{ count, share: total === 0 ? 0 : count / total, status, route, decidedBy: decidedBy(example), example }];
    })
    .sort((a, b) => b.count - a.count);
}

/** `2.3%`, `31%` */
export function shareText(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
}
