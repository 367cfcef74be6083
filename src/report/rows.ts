import { type Fields, fieldsOf } from "../base/fields.ts";
import { sameData } from "../base/same-data.ts";
import { encodingOf } from "./bodies.ts";
import { grpcEndOf } from "./grpc-end.ts";
import { summaryOf, typeLabel } from "./summaries.ts";
import { harmless } from "./text.ts";

export type Severity = "success" | "info" | "warn" | "error";

/** One line of the event list. */
export interface Row {
  /** Its place in the trace, from 1. */
  readonly number: number;
  readonly label: string;
  readonly summary: string;
  readonly severity: Severity;
  /** The event as received. */
  readonly event: Fields;
  readonly message: Fields;
  /** Microseconds since the trace began, if the event has them. */
  readonly start: number | undefined;
  readonly end: number | undefined;
  /** When the step of this event began: `start`, else the end of the row before. */
  readonly began: number;
  /** The request's state as of this row: of this event or of the latest before it that carries one. */
  readonly snapshot: Snapshot | undefined;
  /** The content-encodings of the request and the response as of this row. */
  readonly encodings: { readonly request: string; readonly response: string };
  /** A problem of the client: not an event of the trace. */
  readonly ofClient?: true;
}

interface Snapshot {
  readonly stage: string;
  readonly state: Fields;
  readonly previous: Fields | undefined;
}

/** The row of an event after `before`. Accepts any event, also of unknown types. */
export function rowOf(event: Fields, before: Row | undefined): Row {
  const message = fieldsOf(event.message);
  const scope = Array.isArray(event.scope) && event.scope.length > 0 ? `${event.scope.join(" > ")}: ` : "";
  const state = message.requestState;
  const snapshot: Snapshot | undefined =
    typeof state === "object" && state !== null
      ? {
          stage: String(message.stage ?? message.type ?? ""),
          state: fieldsOf(state),
          previous: before?.snapshot?.state,
        }
      : before?.snapshot;
  const { request, response } = fieldsOf(state);
  return {
    number: (before?.number ?? 0) + 1,
    label: harmless(typeLabel(message)),
    summary: harmless(scope + summaryOf(message)),
    severity: severityOf(event),
    event,
    message,
    start: numberOf(event.eventStart),
    end: numberOf(event.eventEnd),
    began: numberOf(event.eventStart) ?? before?.end ?? before?.began ?? 0,
    snapshot,
    encodings: {
      request: request === undefined ? (before?.encodings.request ?? "") : encodingOf(request),
      response: response === undefined ? (before?.encodings.response ?? "") : encodingOf(response),
    },
  };
}

/** The rows of events after `before`: without it, of all events of a trace. */
export function rowsOf(events: readonly Fields[], before?: Row): readonly Row[] {
  const rows: Row[] = [];
  for (const event of events) rows.push(rowOf(event, rows.at(-1) ?? before));
  return rows;
}

/** Whether the row is a snapshot that equals the one before it. */
export function changesNothing({ message, snapshot }: Row): boolean {
  const isSnapshot = message.type === "requestSnapshot" || message.type === "responseSnapshot";
  if (!isSnapshot || snapshot?.previous === undefined) return false;
  // Only the raw response has these times, so that they are missing later changes nothing.
  const withoutTimes = (state: Fields) => ({ ...state, proxy: undefined });
  return sameData(withoutTimes(snapshot.state), withoutTimes(snapshot.previous));
}

/** A row for a problem of the client: the stream broke, the request could not be sent. */
export function problemRow(text: string, before: Row | undefined): Row {
  return { ...rowOf({ severity: "error", message: { type: "message", text } }, before), ofClient: true };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** The status of a failed gRPC call is 200. */
function severityOf(event: Fields): Severity {
  if (grpcEndOf(fieldsOf(event.message))?.failed === true) return "error";
  const { severity } = event;
  return severity === "success" || severity === "warn" || severity === "error" ? severity : "info";
}
