/** The latest traces that this page has taken. The page of a request shows its trace. */
import type { RequestRecord } from "../src/recorder/records.ts";
import { startTimeOf } from "../src/report/fields.ts";
import type { Row } from "../src/report/rows.ts";
import type { TraceBodies } from "./trace-bodies.ts";

/** A trace whose request is over. */
export interface TakenTrace {
  readonly rows: readonly Row[];
  readonly bodies: TraceBodies;
}

/** Most traces that are remembered: with its bodies, each may have megabytes. */
const MOST = 5;

/** Milliseconds between the starts of a request in its trace and in its record. Clients may send one id with many requests, usually at longer intervals. */
const TOLERANCE = 100;

const taken = new Map<string, TakenTrace>();

/** The id of the request of a trace, as in its record; undefined for a connection. */
export function requestIdOf(rows: readonly Row[]): string | undefined {
  for (const { message } of rows)
    if (message.type === "requestStarted" && typeof message.requestId === "string") return message.requestId;
  return undefined;
}

/** Remembers a trace, and forgets the oldest beyond `MOST`. */
export function remember(trace: TakenTrace): void {
  const id = requestIdOf(trace.rows);
  if (id === undefined) return;
  taken.delete(id);
  taken.set(id, trace);
  for (const oldest of taken.keys()) if (taken.size > MOST) taken.delete(oldest);
}

/** The trace of a recorded request; undefined if it has not been traced here. */
export function traceOf({ id = "", time }: Pick<RequestRecord, "id" | "time">): TakenTrace | undefined {
  const trace = taken.get(id);
  const started = Date.parse(startTimeOf(trace?.rows.map(({ event }) => event) ?? []));
  return Math.abs(started - Date.parse(time)) <= TOLERANCE ? trace : undefined;
}
