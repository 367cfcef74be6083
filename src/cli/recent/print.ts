/** Recorded requests as text: a line for each request, or for each group of them. */
import type { RequestRecord } from "../../recorder/records.ts";
import {
  decidedBy,
  durationText,
  methodOf,
  type RequestGroup,
  shareText,
  statusOf,
  urlOf,
} from "../../report/recorded.ts";
import { table } from "../dump/dump.ts";

/** A line for each record, in this order. */
export function recordTable(records: readonly RequestRecord[]): string {
  const inCluster = records.some(({ pod }) => pod !== undefined);
  const header = ["TIME", "METHOD", "URL", "STATUS", "DURATION", "ROUTE", "BACKEND", "DECIDED BY"];
  const rows = records.map((record) => {
    const { time, duration, route = "", endpoint = "", pod = "" } = record;
    const request = [time.slice(11, 23), methodOf(record), urlOf(record)];
    const row = [...request, statusOf(record), durationText(duration), route, endpoint, decidedBy(record)];
    return inCluster ? [...row, pod] : row;
  });
  return table(inCluster ? [...header, "POD"] : header, rows);
}

/** Everything in a record, a line each, below the outcome of the request. */
export function recordDetails(record: RequestRecord): string {
  const { method, version, host = "", path, status, duration, decider, ...others } = record;
  const decision = decidedBy(record);
  const summary = `${method ?? version ?? ""} ${host}${path} → ${status || "no response"} in ${durationText(duration)}`;
  const width = Math.max(...Object.keys(others).map((name) => name.length));
  const lines = Object.entries(others).map(([name, value]) => `  ${name.padEnd(width)}  ${value}\n`);
  return `${summary}${decision === "" ? "" : ` · ${decision}`}\n${lines.join("")}`;
}

/** A line for each group. */
export function groupTable(groups: readonly RequestGroup<RequestRecord>[], total: number): string {
  const header = ["COUNT", "SHARE", "STATUS", "ROUTE", "DECIDED BY", "LAST", "EXAMPLE"];
  const rows = groups.map(({ count, share, status, route, decidedBy: decision, example }) => {
    const { method = "", host = "", path, time } = example;
    const outcome = [shareText(share), statusOf({ status }), route ?? "", decision];
    return [String(count), ...outcome, time.slice(11, 19), `${method} ${host}${path}`];
  });
  return `${table(header, rows)}of ${total} requests\n`;
}
