/** The messages of a traced request, for exports that need them as such. */
import { type Fields, fieldsOf } from "../../base/fields.ts";
import type { Row } from "../rows.ts";
import { textOf } from "../summaries.ts";

/** The head of a request, with its body if the trace has one. */
export interface RequestMessage {
  readonly method: string;
  readonly uri: string;
  /** Such as `HTTP/1.1`. */
  readonly version: string;
  /** Values as bytes: one character each (ISO 8859-1). */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** ISO 8601 UTC; empty if unknown. */
  readonly startTime: string;
  /** Where the client connected to: `127.0.0.1:3000`; empty if unknown. */
  readonly destination: string;
}

export interface ResponseMessage {
  readonly status: number;
  readonly headers: RequestMessage["headers"];
}

/** A captured body. */
export interface CapturedBody {
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

/** The request as of a row with a request snapshot. */
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

/** The response as of a row with a response snapshot. */
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

/** The last captured body of the stage `final request` or `response`. */
export function bodyOf(rows: readonly Row[], stage: string): CapturedBody | undefined {
  const row = rows.findLast(
    ({ message, event }) => message.type === "bodySnapshot" && message.stage === stage && event.scope === undefined,
  );
  if (row === undefined || typeof row.message.body !== "string") return undefined;
  return { bytes: Buffer.from(row.message.body, "base64"), truncated: row.message.truncated === true };
}

function pairs(headers: unknown): RequestMessage["headers"] {
  const fields: Fields = fieldsOf(headers);
  return Object.entries(fields).map(([name, value]) => [name, textOf(value)] as const);
}
