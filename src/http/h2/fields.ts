/** Converts between the message types and field sections of HTTP/2 (RFC 9113 8.2, 8.3): flat lists with pseudo-header fields. */
import { LOOP_FIELD } from "../../base/process-id.ts";
import { forbiddenInTrailers } from "../h1/fields.ts";
import { type HeaderList, type HttpRequest, type Latin1, madeOf } from "../message/message.ts";

/** Fields that HTTP/2 must not carry (RFC 9113 8.2.2). `te` is allowed as `trailers` only; `requestStart` adds it. */
const OF_CONNECTIONS = new Set([
  "connection",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Those that mean nothing in a response. */
const OF_REQUESTS = new Set(["host", "http2-settings", "te"]);

/**
 * The pseudo-header fields of a request, and after them `loop` as CDN-Loop (loop.ts), unless it is ``, and `te: trailers` where
 * trailers are accepted. `scheme` is that of the connection; without an authority the request has none.
 */
export function requestStart(
  { method, path, search, authority }: Pick<HttpRequest, "method" | "path" | "search" | "authority">,
  scheme: "http" | "https",
  trailersAccepted: boolean,
  loop: Latin1 | "",
): string[] {
  const target = path + search;
  // A literal for each usual shape: a list that grows is allocated twice.
  if (authority !== "" && loop !== "" && trailersAccepted)
    return [
      ":method",
      method,
      ":scheme",
      scheme,
      ":path",
      target,
      ":authority",
      authority,
      LOOP_FIELD,
      loop,
      "te",
      "trailers",
    ];
  if (authority !== "" && loop !== "")
    return [":method", method, ":scheme", scheme, ":path", target, ":authority", authority, LOOP_FIELD, loop];
  const start = [":method", method, ":scheme", scheme, ":path", target];
  if (authority !== "") start.push(":authority", authority);
  if (loop !== "") start.push(LOOP_FIELD, loop);
  if (trailersAccepted) start.push("te", "trailers");
  return start;
}

/** The pseudo-header fields of a request that opens a tunnel for `protocol` by extended CONNECT (RFC 8441 4). */
export function connectStart(
  request: Pick<HttpRequest, "path" | "search" | "authority">,
  scheme: "http" | "https",
  protocol: string,
  loop: Latin1,
): string[] {
  const start = requestStart({ ...request, method: "CONNECT" }, scheme, false, "");
  return start.concat(":protocol", protocol, LOOP_FIELD, loop);
}

/** 1 for the shapes, length and first letter, of the names in `OF_CONNECTIONS`: rules other names out without a look-up. */
const SHAPES_OF_CONNECTIONS = new Uint8Array(1024);
for (const name of OF_CONNECTIONS) SHAPES_OF_CONNECTIONS[shapeOf(name)] = 1;

function shapeOf(name: string): number {
  return ((name.length & 31) << 5) | (name.charCodeAt(0) & 31);
}

function isOfConnection(name: string): boolean {
  return SHAPES_OF_CONNECTIONS[shapeOf(name)] === 1 && OF_CONNECTIONS.has(name);
}

/** `headers` without the fields that HTTP/2 must not carry; the same list if it has none of them, as is usual. */
export function endToEnd(headers: HeaderList): HeaderList {
  for (let i = 0; i < headers.length; i += 2)
    if (isOfConnection(headers[i] as string))
      return madeOf(
        headers,
        headers.filter((_text, at) => !isOfConnection(headers[at - (at % 2)] as string)),
      );
  return headers;
}

/** What the fields of a response say. */
interface ResponseFields {
  readonly status: number;
  readonly headers: HeaderList;
  /** Bytes; -1 without Content-Length. */
  readonly contentLength: number;
}

const STATUS = /^[1-5]\d\d$/;
const LENGTH = /^\d{1,15}$/;
const COLON = 0x3a;

/**
 * Reads the fields of a response, whose names and values HPACK has checked; `fields` becomes the list of its headers. If they could
 * not be passed on safely as HTTP/1.1, returns a text that says why.
 */
export function readResponse(fields: string[]): ResponseFields | string {
  let at = 0;
  let status = "";
  for (; at < fields.length && isPseudo(fields[at] as string); at += 2) {
    if (fields[at] !== ":status" || status !== "") return "a pseudo-header field that a response cannot have";
    status = fields[at + 1] as string;
  }
  if (!STATUS.test(status)) return "the status is not between 100 and 599";
  let contentLength = -1;
  let to = 0;
  for (; at < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    if (isPseudo(name)) return "a pseudo-header field among the others";
    if (isOfConnection(name)) {
      if (!OF_REQUESTS.has(name)) return `${name} is not allowed in HTTP/2`;
      continue;
    }
    if (name === "content-length") {
      if (contentLength !== -1 || !LENGTH.test(value)) return "Content-Length is not one number";
      contentLength = Number(value);
    }
    fields[to++] = name;
    fields[to++] = value;
  }
  fields.length = to;
  return { status: Number(status), headers: fields, contentLength };
}

function isPseudo(name: string): boolean {
  return name.charCodeAt(0) === COLON;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Removes from `fields` what must not be passed on in trailers, as for HTTP/1.1 (RFC 9110 6.5.1). If one of them makes the message
 * malformed, a pseudo-header field (RFC 9113 8.1) or one of `rejected`, returns a text that says why.
 */
export function readTrailers(fields: string[], rejected = NONE): HeaderList | string {
  let to = 0;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (isPseudo(name) || rejected.has(name)) return `${name} is not allowed in trailers`;
    if (forbiddenInTrailers(name)) continue;
    fields[to++] = name;
    fields[to++] = fields[i + 1] as string;
  }
  fields.length = to;
  return fields;
}
