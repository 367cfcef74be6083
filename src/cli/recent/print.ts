/** Recorded requests as lines for people: one for each request, or one for each kind of them. */
import { ERRORS } from "../../base/errors.ts";
import { formatOrigin } from "../../base/origin.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { table } from "../dump/dump.ts";

/** A record, with the pod that it is from in a cluster. */
export type PodRecord = RequestRecord & { readonly pod?: string };

/** One line for each record, in their order. */
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

/** All that a record has, one line each, below what became of the request. */
export function recordDetails(record: PodRecord): string {
  const { method, version, host = "", path, status, duration, decider, ...others } = record;
  const decision = decided(record);
  const summary = `${method ?? version ?? ""} ${host}${path} → ${status || "no response"} in ${milliseconds(duration)}`;
  const width = Math.max(...Object.keys(others).map((name) => name.length));
  const lines = Object.entries(others).map(([name, value]) => `  ${name.padEnd(width)}  ${value}\n`);
  return `${summary}${decision === "" ? "" : ` · ${decision}`}\n${lines.join("")}`;
}

/** What decided how a request ended; empty for those that the backend served as usual. */
function decided({ error, status, reason, slow, decider, grpcStatus }: RequestRecord): string {
  if (error !== undefined) {
    const { message } = ERRORS[error];
    return decider?.origin === undefined ? message : `${message}, at ${formatOrigin(decider.origin)}`;
  }
  if (reason !== "Upstream") return reason;
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
  /** Requests, those that were not kept included. */
  readonly count: number;
  /** Of all requests in the time of the records. */
  readonly share: number;
  readonly status: number;
  readonly route: string | null;
  readonly decidedBy: string;
  /** The newest. */
  readonly example: PodRecord;
}

/** Groups of `records`, which are sorted by time, the newest first; the largest group first. `total`: requests in that time. */
export function groupsOf(records: readonly PodRecord[], total: number): readonly RequestGroup[] {
  const groups = Map.groupBy(records, (record) => [record.route, record.status, decided(record)].join("\0"));
  return [...groups.values()]
    .flatMap((group) => {
      const [example] = group;
      if (example === undefined) return [];
      const counted = group.map(({ leftOut = 0, notKept }) => (notKept === true ? 0 : 1 + leftOut));
      // What counts them may be older than the time in question.
      const count = Math.max(
        group.length,
        counted.reduce((sum, each) => sum + each, 0),
      );
      const { status, route = null } = example;
      return [{ count, share: total === 0 ? 0 : count / total, status, route, decidedBy: decided(example), example }];
    })
    .sort((a, b) => b.count - a.count);
}

/** One line for each group. */
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
