import { type Fields, fieldsOf } from "../base/fields.ts";
import { candidatesOf, evaluatedCount, selectedName } from "./fields.ts";
import { grpcEndOf } from "./grpc-end.ts";
import { problemRow, type Row, rowOf } from "./rows.ts";
import { type StepLine, treeLines } from "./step-lines.ts";
import { authorization, LABEL_WIDTH, textOf } from "./summaries.ts";
import { duration, harmless, milliseconds } from "./text.ts";

/** The outcome of a trace: the request, how it ended, and what decided that. */

const RUNNING = "still running";
const END_LOST = "end not seen";

interface TraceOutcome {
  /** `GET http://shop.example/api` or `tcp connection from 10.0.0.1:5000`; empty until the request's head is known. */
  readonly request: string;
  /**
   * The final status, with that of a gRPC call (`200, grpc-status 14 (UNAVAILABLE)`); `closed` for a connection without requests;
   * `still running` if the trace ended first; `end not seen` if the last events were dropped; `200 streaming` or `open` for a stream that lasts. Empty while any other request runs, or
   * if there was no response.
   */
  readonly status: string;
  /** From the start of the trace to its last event: `7.558 ms`. */
  readonly duration: string;
  /** Short name of the selected route; empty when none was. */
  readonly route: string;
  /** What decided the response: a route, policy, rule or backend. Until the request has finished, how far its stream is, or empty. */
  readonly why: string;
  /** The row of the event that decided the outcome; undefined while the request runs, or if no event says more than this outcome. */
  readonly decider: Row | undefined;
  readonly severity: Row["severity"];
}

/** The outcome so far. Ignores events with a scope, which belong to callouts and mirrors. */
export function outcomeOf(rows: readonly Row[]): TraceOutcome {
  const own = rows.filter((row) => row.event.scope === undefined);
  const last = (type: string) => own.findLast((row) => row.message.type === type);
  const finished = last("requestFinished");
  const route = last("routeSelection");
  const end = (finished ?? own.findLast((row) => row.end !== undefined))?.end;
  const decision = finished === undefined ? undefined : decisionOf(own, finished, route);
  return {
    request: harmless(requestOf(own) || (finished === undefined ? "" : "a request that could not be read")),
    status: finished === undefined ? unfinished(own) : statusOf(own, finished),
    duration: end === undefined ? "" : duration(end),
    route: harmless(route === undefined ? "" : selectedName(route.message)),
    why: harmless(
      decision === undefined
        ? (last("streamProgress")?.summary ?? "")
        : [decision.text, retriesOf(own)].filter(Boolean).join(", "),
    ),
    decider: decision?.row,
    severity: (finished ?? last("endLost"))?.severity ?? "info",
  };
}

/** The outcome on one line. */
export function outcomeLine({ request, status, duration: took, route, why: reason }: TraceOutcome): string {
  const time = took === "" ? "" : `${[RUNNING, END_LOST].includes(status) ? "after" : "in"} ${took}`;
  const end = [status === "" ? "no response" : status, time].filter(Boolean).join(" ");
  const parts = [`${request} → ${end}`.trim(), route === "" ? "" : `route ${route}`, reason];
  return parts.filter(Boolean).join(" · ");
}

function requestOf(rows: readonly Row[]): string {
  const { request, source } = firstState(rows);
  const { method, uri } = fieldsOf(request);
  const { address, port } = fieldsOf(source);
  const protocol = connectionOf(rows);
  if (protocol !== "") return `${protocol} connection from ${textOf(address)}:${textOf(port)}`;
  return [method, uri].map(textOf).filter(Boolean).join(" ");
}

function statusOf(rows: readonly Row[], finished: Row): string {
  const status = textOf(finished.message.status);
  if (status === "" && connectionOf(rows) !== "") return "closed";
  const call = grpcEndOf(finished.message);
  return call === undefined ? status : `${status}, ${call.text}`;
}

/** `after 3 retries`; empty if the first attempt was the only one. */
function retriesOf(rows: readonly Row[]): string {
  const retries = rows.filter(({ message }) => message.type === "backendCallStart").length - 1;
  if (retries < 1) return "";
  return retries === 1 ? "after 1 retry" : `after ${retries} retries`;
}

/** Of a request without its last event. */
function unfinished(rows: readonly Row[]): string {
  const types = rows.map(({ message }) => message.type);
  if (types.includes("endLost")) return END_LOST;
  return types.includes("traceEnded") ? RUNNING : streaming(rows);
}

/** Of a stream that has lasted long enough for an event of its progress. */
function streaming(rows: readonly Row[]): string {
  if (!rows.some(({ message }) => message.type === "streamProgress")) return "";
  if (connectionOf(rows) !== "") return "open";
  const head = rows.findLast(({ message }) => message.type === "responseSnapshot")?.message.requestState;
  return [textOf(fieldsOf(fieldsOf(head).response).code), "streaming"].filter(Boolean).join(" ");
}

/** `tcp` or `tls` of a connection without requests. */
function connectionOf(rows: readonly Row[]): string {
  return textOf(rows.find((row) => row.message.type === "requestStarted")?.message.protocol);
}

function firstState(rows: readonly Row[]): Fields {
  return fieldsOf(rows.find((row) => row.message.type === "requestSnapshot")?.message.requestState);
}

interface Decision {
  readonly text: string;
  readonly row?: Row | undefined;
}

/** What decided the outcome of the request. */
function decisionOf(rows: readonly Row[], finished: Row, route: Row | undefined): Decision {
  const challenge = rows.find(({ message }) => message.type === "acmeChallenge" && message.result === "answered");
  if (challenge !== undefined) return { text: "response to an ACME challenge", row: challenge };
  const { status, error } = finished.message;
  const code = typeof status === "number" ? status : 0;
  if (route !== undefined && selectedName(route.message) === "") return { text: noRoute(route.message), row: route };
  const result = rows.findLast((row) => row.message.type === "backendCallResult");
  if (code >= 400 || error !== null) {
    const row = rows.findLast(decides);
    const reason = row === undefined ? "" : decision(row.message, rows);
    if (reason !== "") return { text: reason, row };
    if (typeof error === "string" && error !== "") return { text: error };
    return { text: result === undefined ? "" : `the backend returned ${code}`, row: result };
  }
  const call = grpcEndOf(finished.message);
  if (call?.failed === true) {
    const row = rows.findLast(decides) ?? result;
    const reason = row === undefined || row === result ? "" : decision(row.message, rows);
    return { text: reason || (row === undefined ? "" : `${backendOf(rows)} ended the call with ${call.text}`), row };
  }
  const applied = (kind: string) => rows.findLast(({ message }) => message.type === "policy" && message.kind === kind);
  const location = code >= 300 ? locationOf(rows) : "";
  const redirect = applied("request_redirect");
  if (location !== "" && redirect !== undefined)
    return { text: `redirected to ${location} by request_redirect`, row: redirect };
  const direct = applied("direct_response");
  if (direct !== undefined) return { text: "response by direct_response", row: direct };
  return { text: route === undefined ? "" : won(route.message), row: route };
}

/** Whether an event can be why a request failed. Severity is not enough: an authorization that allows may hold a failed rule. */
function decides({ message, severity }: Row): boolean {
  switch (message.type) {
    case "authorizationResult":
      return message.result === "deny";
    case "policy":
      return severity === "error";
    case "backendCallResult":
      return severity === "error" || severity === "warn";
    default:
      return false;
  }
}

function decision(message: Fields, rows: readonly Row[]): string {
  if (message.type === "authorizationResult") return authorization(message);
  if (message.type === "policy") {
    const result = fieldsOf(message.result);
    const details = typeof result.details === "string" ? result.details : "";
    return [`rejected by ${textOf(message.kind)}`, details || textOf(result.reason)].filter(Boolean).join(": ");
  }
  const backend = backendOf(rows);
  if (typeof message.error === "string") return `${backend}: ${message.error}`;
  return `${backend} returned ${textOf(message.status)}`;
}

/** The backend of the last attempt. */
function backendOf(rows: readonly Row[]): string {
  const target = textOf(rows.findLast((row) => row.message.type === "backendCallStart")?.message.target);
  return target === "" ? "the backend" : `backend ${target}`;
}

function locationOf(rows: readonly Row[]): string {
  const state = rows.findLast((row) => row.message.type === "responseSnapshot")?.message.requestState;
  return textOf(fieldsOf(fieldsOf(fieldsOf(state).response).headers).location);
}

/** The first candidate is the nearest to a match; listeners are listed only when none accepts the host. */
function noRoute(message: Fields): string {
  if (Array.isArray(message.listeners)) {
    const reason = textOf(fieldsOf(message.listeners[0]).reason);
    return reason === "" ? "no listener accepts this host" : `no listener accepts this host; ${reason}`;
  }
  const [nearest] = candidatesOf(message);
  return nearest === undefined ? "no route matches" : `no route matches; nearest ${nearest.name}: ${nearest.reason}`;
}

/** Why the selected route beat the others: the precedence over the next one that matched too. Empty if the event has only the selected route. */
function won(message: Fields): string {
  if (evaluatedCount(message) === 0) return "";
  const matching = candidatesOf(message).filter(({ matched }) => matched);
  const next = matching[1];
  if (next === undefined) return "the only route that matches";
  return `won over "${next.name}": ${next.because || next.reason}`;
}

/** A trace as plain lines, for pipes, logs and terminals without a full-screen view. */
export class TextLines {
  readonly #rows: Row[] = [];

  /** The line of an event: milliseconds since the start, severity, type and summary. */
  event(event: Fields): string {
    return this.#line(rowOf(event, this.#rows.at(-1)));
  }

  /** The line of a problem of the client. */
  problem(text: string): string {
    return this.#line(problemRow(text, this.#rows.at(-1)));
  }

  /** What follows the events: the request, how it ended and what decided, and the decisions as a tree. Empty without events. */
  end(): StepLine[] {
    if (this.#rows.length === 0) return [];
    return [{ depth: 0, text: outcomeLine(outcomeOf(this.#rows)) }, ...treeLines(this.#rows.map(({ event }) => event))];
  }

  #line(row: Row): string {
    this.#rows.push(row);
    const severity = row.severity === "info" ? "" : row.severity;
    const columns = [
      milliseconds(row.end).padStart(10),
      severity.padEnd(7),
      row.label.padEnd(LABEL_WIDTH),
      row.summary,
    ];
    return `${columns.join("  ").trimEnd()}\n`;
  }
}
