/** Between header sections of HTTP/2 (RFC 9113 8.2, 8.3), flat with their pseudo-header fields, and the message types. */

import { forbiddenInTrailers } from "../h1/fields.ts";
import { isFieldValue, isToken } from "../h1/syntax.ts";
import type { HeaderList, HttpRequest } from "../message.ts";

/** Fields that HTTP/2 must not carry (RFC 9113 8.2.2); `te` only as `trailers`, which is added where it holds. */
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

/**
 * The pseudo-header fields of a request, and after them `te: trailers` where trailers are accepted. `scheme` is that of the
 * connection; without an authority the request has none.
 */
export function requestStart(
  { method, path, search, authority }: Pick<HttpRequest, "method" | "path" | "search" | "authority">,
  scheme: "http" | "https",
  trailersAccepted: boolean,
): string[] {
  const start = [":method", method, ":scheme", scheme, ":path", path + search];
  if (authority !== "") start.push(":authority", authority);
  if (trailersAccepted) start.push("te", "trailers");
  return start;
}

/** `headers` without those that HTTP/2 must not carry; the list itself where it has none of them, as is usual. */
export function endToEnd(headers: HeaderList): HeaderList {
  for (let i = 0; i < headers.length; i += 2)
    if (OF_CONNECTIONS.has(headers[i] as string))
      return headers.filter((_text, at) => !OF_CONNECTIONS.has(headers[at - (at % 2)] as string));
  return headers;
}

/** What the fields of a response say. */
export interface ResponseFields {
  readonly status: number;
  readonly headers: HeaderList;
  /** Bytes, or -1 when it is not said. */
  readonly contentLength: number;
}

const STATUS = /^[1-5]\d\d$/;
const LENGTH = /^\d{1,15}$/;

/**
 * Reads the fields of a response, names in lower case. Returns text that says what is wrong when they cannot be passed on as
 * HTTP/1.1 without danger.
 */
export function readResponse(raw: readonly string[]): ResponseFields | string {
  let status = "";
  let length: string | undefined;
  const headers: HeaderList = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    if (name === ":status") status = value;
    else {
      if (!isToken(name)) return "invalid character in a header name";
      if (!isFieldValue(value)) return "control character in a header value";
      if (OF_CONNECTIONS.has(name)) continue;
      if (name === "content-length") {
        if (length !== undefined || !LENGTH.test(value)) return "Content-Length is not one number";
        length = value;
      }
      headers.push(name, value);
    }
  }
  if (!STATUS.test(status)) return "the status is not between 100 and 599";
  return { status: Number(status), headers, contentLength: length === undefined ? -1 : Number(length) };
}

/** The trailers that may be passed on, as those of HTTP/1.1 (RFC 9110 6.5.1). */
export function readTrailers(raw: readonly string[]): HeaderList {
  const trailers: HeaderList = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    if (isToken(name) && isFieldValue(value) && !forbiddenInTrailers(name)) trailers.push(name, value);
  }
  return trailers;
}

/** Trailers as `node:http2` takes them; without a prototype, because a client may call a field `__proto__`. */
export function trailerObject(trailers: HeaderList): Record<string, string[]> {
  const fields = Object.create(null) as Record<string, string[]>;
  for (let i = 0; i < trailers.length; i += 2) {
    const name = trailers[i] as string;
    const values = fields[name] ?? [];
    values.push(trailers[i + 1] as string);
    fields[name] = values;
  }
  return fields;
}
