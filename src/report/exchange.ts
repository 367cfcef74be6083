/** The messages of a trace: the request as received, and each attempt at a backend. */
import { type Fields, fieldsOf } from "../base/fields.ts";
import type { Row } from "./rows.ts";
import { textOf } from "./summaries.ts";

/** The head of a request. */
export interface RequestMessage {
  readonly method: string;
  readonly uri: string;
  /** Such as `HTTP/1.1`. */
  readonly version: string;
  /** Values as bytes: one character each (ISO 8859-1). */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** ISO 8601 UTC; empty if unknown. */
  readonly startTime: string;
  /** The address that the client connected to: `127.0.0.1:3000`; empty if unknown. */
  readonly destination: string;
}

export interface ResponseMessage {
  readonly status: number;
  readonly headers: RequestMessage["headers"];
}

/** The request in a row with a request snapshot. */
export function requestAt({ message }: Row): RequestMessage {
  const { request, destination } = fieldsOf(message.requestState);
  const { method, uri, version, headers, startTime } = fieldsOf(request);
  const { address, port } = fieldsOf(destination);
  const host = textOf(address).includes(":") ? `[${textOf(address)}]` : textOf(address);
  return {
    method: textOf(method),
    uri: textOf(uri),
    version: textOf(version),
    headers: pairs(headers),
    startTime: textOf(startTime),
    destination: host === "" ? "" : `${host}:${textOf(port)}`,
  };
}

/** The response in a row with a response snapshot. */
export function responseAt({ message }: Row): ResponseMessage {
  const { code, headers } = fieldsOf(fieldsOf(message.requestState).response);
  return { status: typeof code === "number" ? code : 0, headers: pairs(headers) };
}

/** Microseconds that a part of a call took; undefined if the call had no such part. */
export function timeOf(call: Row, part: "dns" | "connect" | "tls" | "firstByte"): number | undefined {
  // Decimal seconds followed by `s`.
  const seconds = Number.parseFloat(textOf(fieldsOf(call.message.timing)[part]));
  return Number.isNaN(seconds) ? undefined : seconds * 1_000_000;
}

/** The first row of the request as received; undefined for connections without requests, and requests that cannot be parsed. */
export function receivedRow(rows: readonly Row[]): Row | undefined {
  const row = rows.find(({ message, event }) => message.type === "requestSnapshot" && event.scope === undefined);
  return row === undefined || fieldsOf(row.message.requestState).request === undefined ? undefined : row;
}

/** An attempt at a backend: the request that was sent, and its result. */
export interface Attempt {
  /** From 1 on. */
  readonly number: number;
  /** The endpoint: `host:port` or `unix:path`. */
  readonly target: string;
  /** Microseconds since the trace began. */
  readonly start: number;
  readonly request: RequestMessage;
  /** How it ended; undefined while it runs. */
  readonly result: Row | undefined;
  readonly response: ResponseMessage | undefined;
  /** What the policy `retry` decided about it; undefined if it did not. */
  readonly retry: Row | undefined;
}

/** The attempts of a request, without calls of policies. */
export function attemptsOf(rows: readonly Row[]): Attempt[] {
  const own = rows.filter(({ event }) => event.scope === undefined);
  const starts = own.flatMap(({ message }, index) => (message.type === "backendCallStart" ? [index] : []));
  return starts.flatMap((index, i) => {
    const row = own[index];
    const sent = own.slice(0, index).findLast(({ message }) => message.type === "requestSnapshot");
    const later = own.slice(index, starts[i + 1]);
    const response = later.find(({ message }) => message.stage === "raw response");
    if (row === undefined || sent === undefined) return [];
    return {
      number: i + 1,
      target: textOf(row.message.target),
      start: row.end ?? 0,
      request: requestAt(sent),
      result: later.find(({ message }) => message.type === "backendCallResult"),
      response: response === undefined ? undefined : responseAt(response),
      retry: later.find(({ message }) => message.type === "policy" && message.kind === "retry"),
    };
  });
}

function pairs(headers: unknown): RequestMessage["headers"] {
  const fields: Fields = fieldsOf(headers);
  return Object.entries(fields).map(([name, value]) => [name, textOf(value)] as const);
}
