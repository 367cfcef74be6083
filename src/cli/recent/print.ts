/** Recorded requests as text: a line for each request, or for each group of them. */
import { ERRORS } from "../../base/errors.ts";
import { formatOrigin } from "../../base/origin.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { writtenPolicy } from "../../trace/policy-kinds.ts";
import { table } from "../dump/dump.ts";

/** A record; in a cluster, with the pod that it comes from. */
export type PodRecord = RequestRecord & { readonly pod?: string };

/** A line for each record, in this order. */
export function recordTable(records: readonly PodRecord[]): string {
  const inCluster = records.some(({ pod }) => pod !== undefined);
  const header = ["TIME", "METHOD", "URL", "STATUS", "DURATION", "ROUTE", "BACKEND", "DECIDED BY"];
  const rows = records.map((record) => {
    const { time, kind, version, host = "", path, status, duration, route = "", endpoint = "", pod = "" } = record;
    const url = `${host}${path}${record.cut === true ? "…" : ""}`;
    const answer = status === 0 ? "-" : String(status);
    const method = record.method ?? (kind === "unreadable" ? "-" : version) ?? "";
    const row = [time.slice(11, 23), method, url, answer, milliseconds(duration), route, endpoint, decided(record)];
    return inCluster ? [...row, pod] : row;
  });
  return table(inCluster ? [...header, "POD"] : header, rows);
}

/** Everything in a record, a line each, below the outcome of the request. */
export function recordDetails(record: PodRecord): string {
  const { method, version, host = "", path, status, duration, decider, ...others } = record;
  const decision = decided(record);
  const summary = `${method ?? version ?? ""} ${host}${path} → ${status || "no response"} in ${milliseconds(duration)}`;
  const width = Math.max(...Object.keys(others).map((name) => name.length));
  const lines = Object.entries(others).map(([name, value]) => `  ${name.padEnd(width)}  ${value}\n`);
  return `${summary}${decision === "" ? "" : ` · ${decision}`}\n${lines.join("")}`;
}

/** What decided how a request ended; empty if the backend served it as usual. */
function decided({ error, status, reason, slow, decider, grpcStatus }: RequestRecord): string {
  const at = decider?.origin === undefined ? "" : `, at ${formatOrigin(decider.origin)}`;
  if (error !== undefined) return `${ERRORS[error].message}${at}`;
  if (reason !== "Upstream") return `${decider?.policy === undefined ? reason : writtenPolicy(decider.policy)}${at}`;
  if (status >= 500) return "the backend";
  if (grpcStatus !== undefined && grpcStatus !== 0) return `the backend: gRPC status ${grpcStatus}`;
  return slow === true ? "slow for its route" : "";
}

function milliseconds(duration: number): string {
  return duration >= 1000 ? `${threeDigits(duration / 1000)}s` : `${threeDigits(duration)}ms`;
}

/** With three significant digits, or all of those before the point. */
function threeDigits(value: number): string {
  return value < 100 ? value.toPrecision(3) : value.toFixed(0);
}

/** Requests that ended alike: on the same route, with the same status, for the same reason. */
interface RequestGroup {
  /** Requests, including those whose records were not kept. */
  readonly count: number;
  /** The part of all requests in the period of the query. */
  readonly share: number;
  readonly status: number;
  readonly route: string | null;
  readonly decidedBy: string;
  /** The newest. */
  readonly example: PodRecord;
}

/** Groups `records` (the newest first); the largest group is first. `total`: requests in the period of the query. */
export function groupsOf(records: readonly PodRecord[], total: number): readonly RequestGroup[] {
  const groups = Map.groupBy(records, (record) => [record.route, record.status, decided(record)].join("\0"));
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
      return [{ count, share: total === 0 ? 0 : count / total, status, route, decidedBy: decided(example), example }];
    })
    .sort((a, b) => b.count - a.count);
}

/** A line for each group. */
export function groupTable(groups: readonly RequestGroup[], total: number): string {
  const header = ["COUNT", "SHARE", "STATUS", "ROUTE", "DECIDED BY", "LAST", "EXAMPLE"];
  const rows = groups.map(({ count, share, status, route, decidedBy, example }) => {
    const { method = "", host = "", path, time } = example;
    const answer = status === 0 ? "-" : String(status);
    const part = `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`;
    return [String(count), part, answer, route ?? "", decidedBy, time.slice(11, 19), `${method} ${host}${path}`];
  });
  return `${table(header, rows)}of ${total} requests\n`;
}
