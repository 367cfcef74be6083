/**
 * A trace as an HTTP Archive (HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/), for the network panel of a browser: an entry for
 * the request of the client, and one for each attempt at a backend.
 */
import { STATUS_CODES } from "node:http";
import { packageVersion } from "../../base/build-info.ts";
import type { Fields } from "../../base/fields.ts";
import { readableValue } from "../../base/header-text.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { textOfBody } from "../bodies.ts";
import { decompress } from "../decompress.ts";
import {
  type Attempt,
  attemptsOf,
  type RequestMessage,
  type ResponseMessage,
  receivedRow,
  requestAt,
  responseAt,
  timeOf,
} from "../exchange.ts";
import { outcomeLine, outcomeOf } from "../outcome.ts";
import { decidedBy, urlToSend } from "../recorded.ts";
import type { Row } from "../rows.ts";
import { textOf } from "../summaries.ts";
import { bodyOf, type CapturedBody } from "./captured-body.ts";

/** HAR's value for a size or time that is not known, or does not apply. */
const UNKNOWN = -1;

/** The archive as JSON; undefined if the trace has no request. */
export function harOf(rows: readonly Row[]): Fields | undefined {
  const first = receivedRow(rows);
  if (first === undefined) return undefined;
  const entries = [clientEntry(rows, first), ...attemptsOf(rows).map(attemptEntry)];
  return archive(dateAt(requestAt(first), 0), outcomeLine(outcomeOf(rows)), entries);
}

/** The archive of a recorded request, whose fields, query and bodies are not known; undefined for connections and sessions. */
export function harOfRecord(record: RequestRecord): Fields | undefined {
  const { method, time, version = "", status, duration, beforeCall = 0, untilAnswer, received, sent } = record;
  const url = urlToSend(record);
  if (method === undefined || url === undefined) return undefined;
  const waited = untilAnswer === undefined ? duration : beforeCall + untilAnswer;
  const timings = { send: 0, wait: 1000 * waited, receive: 1000 * Math.max(0, duration - waited) };
  const request: RequestMessage = { method, uri: url, version, headers: [], startTime: time, destination: "" };
  const decided = decidedBy(record);
  const response = status === 0 ? undefined : { status, headers: [] };
  const entry = {
    ...entryOf(request, 0, timings),
    request: { ...requestPart(request, undefined), bodySize: received },
    response: { ...responsePart(response, version, undefined, status === 0 ? decided : ""), bodySize: sent },
    comment: ["as recorded, without fields, query and bodies", decided].filter(Boolean).join("; "),
  };
  return archive(dateAt(request, 0), `${status || "no response"} ${method} ${url}`, [entry]);
}

/** `started`: ISO 8601. Times are milliseconds. */
function archive(started: string, title: string, entries: readonly Fields[]): Fields {
  return {
    log: {
      version: "1.2",
      creator: { name: "tracegate", version: packageVersion() },
      pages: [{ id: "trace", startedDateTime: started, title, pageTimings: {} }],
      entries,
    },
  };
}

/** The exchange between client and gateway. */
function clientEntry(rows: readonly Row[], first: Row): Fields {
  const request = requestAt(first);
  const responded = rows.findLast(({ message }) => message.type === "responseSnapshot");
  const end = rows.findLast((row) => row.end !== undefined && row.event.scope === undefined)?.end ?? 0;
  const waited = responded?.end ?? end;
  const finished = rows.findLast(({ message }) => message.type === "requestFinished");
  return {
    ...entryOf(request, 0, { send: 0, wait: waited, receive: end - waited }),
    request: requestPart(request, bodyOf(rows, "final request")),
    response: responsePart(
      responded === undefined ? undefined : responseAt(responded),
      request.version,
      bodyOf(rows, "response"),
      textOf(finished?.message.error),
    ),
    ...(request.destination !== "" && { serverIPAddress: addressOf(request.destination) }),
    comment: "the client's request to the gateway",
  };
}

/** The attempt's URL has the endpoint in place of the host, so that it can be told apart from the client's request. */
function attemptEntry({ number, target, start, request, result, response }: Attempt): Fields {
  const began = result?.start ?? start;
  const took = (result?.end ?? start) - began;
  const opening = (["dns", "connect", "tls"] as const).map((part) => result && timeOf(result, part));
  const opened = opening.reduce<number>((sum, time) => sum + (time ?? 0), 0);
  const waited = Math.max(0, (result && timeOf(result, "firstByte")) ?? took - opened);
  const [resolved, connected, secured] = opening;
  const uri = request.uri.replace(/^(\w+:\/\/)[^/?#]*/, `$1${target}`);
  return {
    ...entryOf(request, began, {
      ...(resolved !== undefined && { dns: resolved }),
      // HAR counts the handshake as part of connecting.
      ...(connected !== undefined && { connect: connected + (secured ?? 0) }),
      ...(secured !== undefined && { ssl: secured }),
      send: 0,
      wait: waited,
      receive: Math.max(0, took - opened - waited),
    }),
    request: requestPart({ ...request, uri }, undefined),
    response: responsePart(response, request.version, undefined, textOf(result?.message.error)),
    ...(/^[\d.]+:\d+$|^\[/.test(target) && { serverIPAddress: addressOf(target) }),
    comment: `attempt ${number} at ${target}`,
  };
}

/** Without the port, and without brackets. */
function addressOf(hostAndPort: string): string {
  return hostAndPort.replace(/:\d+$/, "").replace(/[[\]]/g, "");
}

/** What entries have besides their messages; `timings` and `start` in microseconds. */
function entryOf(request: RequestMessage, start: number, timings: Readonly<Record<string, number>>): Fields {
  const { ssl: _, ...parts } = timings;
  const milliseconds = Object.entries(timings).map(([name, time]) => [name, time / 1000] as const);
  return {
    pageref: "trace",
    // Otherwise Chromium guesses, such as a document or scripts.
    _resourceType: "fetch",
    startedDateTime: dateAt(request, start),
    time: Object.values(parts).reduce((sum, time) => sum + time, 0) / 1000,
    cache: {},
    timings: { blocked: UNKNOWN, dns: UNKNOWN, connect: UNKNOWN, ssl: UNKNOWN, ...Object.fromEntries(milliseconds) },
  };
}

function dateAt({ startTime }: RequestMessage, microseconds: number): string {
  const start = Date.parse(startTime);
  return new Date((Number.isNaN(start) ? 0 : start) + microseconds / 1000).toISOString();
}

function requestPart({ method, uri, version, headers }: RequestMessage, body: CapturedBody | undefined): Fields {
  const query = /\?([^#]*)/.exec(uri)?.[1] ?? "";
  const pairs = query.split("&").filter(Boolean);
  return {
    method,
    url: uri,
    httpVersion: version,
    cookies: [],
    headers: headers.map(readableField),
    queryString: pairs.map((pair) => {
      const equals = pair.includes("=") ? pair.indexOf("=") : pair.length;
      return { name: pair.slice(0, equals), value: pair.slice(equals + 1) };
    }),
    headersSize: UNKNOWN,
    bodySize: body?.bytes.length ?? 0,
    ...(body !== undefined && { postData: postData(body, headers) }),
  };
}

/** Without a response, the status is 0 and the browser shows the error. */
function responsePart(
  response: ResponseMessage | undefined,
  version: string,
  body: CapturedBody | undefined,
  error: string,
): Fields {
  const { status = 0, headers = [] } = response ?? {};
  return {
    status,
    statusText: STATUS_CODES[status] ?? "",
    httpVersion: version,
    cookies: [],
    headers: headers.map(readableField),
    content: {
      size: body?.bytes.length ?? 0,
      mimeType: headerOf(headers, "content-type"),
      ...(body !== undefined && content(body, headers)),
    },
    redirectURL: headerOf(headers, "location"),
    headersSize: UNKNOWN,
    bodySize: body?.bytes.length ?? UNKNOWN,
    ...(status === 0 && error !== "" && { _error: error }),
    ...(error !== "" && { comment: error }),
  };
}

/** HAR has only text: a comment describes a binary body. */
function postData(body: CapturedBody, headers: RequestMessage["headers"]): Fields {
  const { text } = contentOf(body, headers);
  const about = [text === undefined ? `binary, ${body.bytes.length} bytes` : "", cut(body)].filter(Boolean).join(", ");
  const mimeType = headerOf(headers, "content-type");
  return { mimeType, params: [], text: text ?? "", ...(about !== "" && { comment: about }) };
}

function content(body: CapturedBody, headers: RequestMessage["headers"]): Fields {
  const { bytes, text } = contentOf(body, headers);
  const about = cut(body);
  return {
    size: bytes.length,
    ...(text === undefined ? { text: Buffer.from(bytes).toString("base64"), encoding: "base64" } : { text }),
    ...(about !== "" && { comment: about }),
  };
}

/** Without its content-encoding where that is possible. `text`: undefined for binary content. */
function contentOf(
  { base64, bytes: raw }: CapturedBody,
  headers: RequestMessage["headers"],
): { readonly bytes: Uint8Array; readonly text: string | undefined } {
  const bytes = decompress(base64, encodingOf(headers)) ?? raw;
  return { bytes, text: textOfBody(bytes) };
}

function cut({ truncated }: CapturedBody): string {
  return truncated ? "cut short" : "";
}

function encodingOf(headers: RequestMessage["headers"]): string {
  return headerOf(headers, "content-encoding").trim().toLowerCase();
}

function readableField([name, value]: readonly [string, string]): Fields {
  return { name, value: readableValue(value) };
}

function headerOf(headers: RequestMessage["headers"], name: string): string {
  return headers.find(([each]) => each === name)?.[1] ?? "";
}
