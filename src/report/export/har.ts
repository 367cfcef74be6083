/**
 * A trace as an HTTP Archive (HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/), for the network panel of a browser: an entry for
 * the request of the client, and one for each attempt at a backend.
 */
import { STATUS_CODES } from "node:http";
import { packageVersion } from "../../base/build-info.ts";
import type { Fields } from "../../base/fields.ts";
import { contentOf, readableValue } from "../bodies.ts";
import { outcomeLine, outcomeOf } from "../outcome.ts";
import type { Row } from "../rows.ts";
import { textOf } from "../summaries.ts";
import {
  bodyOf,
  type CapturedBody,
  type RequestMessage,
  type ResponseMessage,
  receivedRow,
  requestAt,
  responseAt,
  timeOf,
} from "./exchange.ts";

/** HAR's value for a size or time that is not known, or does not apply. */
const UNKNOWN = -1;

/** The archive as JSON; undefined if the trace has no request. Times are milliseconds. */
export function harOf(rows: readonly Row[]): Fields | undefined {
  const first = receivedRow(rows);
  if (first === undefined) return undefined;
  const page = { id: "trace", startedDateTime: dateAt(requestAt(first), 0), title: outcomeLine(outcomeOf(rows)) };
  return {
    log: {
      version: "1.2",
      creator: { name: "tracegate", version: packageVersion() },
      pages: [{ ...page, pageTimings: {} }],
      entries: [clientEntry(rows, first), ...attempts(rows).map(attemptEntry)],
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
    ...entry(request, 0, { send: 0, wait: waited, receive: end - waited }),
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

/** An attempt: the request as sent, and what came of it. */
interface Attempt {
  readonly number: number;
  readonly target: string;
  readonly start: number;
  readonly request: RequestMessage;
  readonly result: Row | undefined;
  readonly response: ResponseMessage | undefined;
}

function attempts(rows: readonly Row[]): Attempt[] {
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
    };
  });
}

/** The attempt's URL has the endpoint in place of the host, so that both requests can be told apart. */
function attemptEntry({ number, target, start, request, result, response }: Attempt): Fields {
  const began = result?.start ?? start;
  const took = (result?.end ?? start) - began;
  const opening = (["dns", "connect", "tls"] as const).map((part) => result && timeOf(result, part));
  const opened = opening.reduce<number>((sum, time) => sum + (time ?? 0), 0);
  const waited = Math.max(0, (result && timeOf(result, "firstByte")) ?? took - opened);
  const [resolved, connected, secured] = opening;
  const uri = request.uri.replace(/^(\w+:\/\/)[^/?#]*/, `$1${target}`);
  return {
    ...entry(request, began, {
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
function entry(request: RequestMessage, start: number, timings: Readonly<Record<string, number>>): Fields {
  const { ssl: _, ...parts } = timings;
  const milliseconds = Object.entries(timings).map(([name, time]) => [name, time / 1000] as const);
  return {
    pageref: "trace",
    // Else Chromium guesses: a document, and scripts.
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

/** Without a response, its status is 0 and the browser shows the error. */
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

/** HAR has text only: of a binary body, what it is. */
function postData(body: CapturedBody, headers: RequestMessage["headers"]): Fields {
  const { text } = contentOf(body.bytes, encodingOf(headers));
  const about = [text === undefined ? `binary, ${body.bytes.length} bytes` : "", cut(body)].filter(Boolean).join(", ");
  const mimeType = headerOf(headers, "content-type");
  return { mimeType, params: [], text: text ?? "", ...(about !== "" && { comment: about }) };
}

function content(body: CapturedBody, headers: RequestMessage["headers"]): Fields {
  const { bytes, text } = contentOf(body.bytes, encodingOf(headers));
  const about = cut(body);
  return {
    size: bytes.length,
    ...(text === undefined ? { text: Buffer.from(bytes).toString("base64"), encoding: "base64" } : { text }),
    ...(about !== "" && { comment: about }),
  };
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
