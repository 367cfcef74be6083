import { latin1Slice } from "../../net/node-internals.ts";
import { findHeadEnd, prefixError, skipLeadingCrlf } from "../h1/head-end.ts";
import { parseRequestHead, RequestHead } from "../h1/parse-head.ts";
import type { HttpRequest } from "../message/message.ts";
import type { HeadError } from "../message/syntax.ts";
import { invalid } from "../message/syntax.ts";
import { parseTarget } from "../message/target.ts";
import type { ConnectionLimits } from "../stream.ts";

const UNDERSCORE = invalid("underscore in the name of a header");

/** Finds and parses the heads of one connection's requests in the bytes that have arrived. */
export class HeadReader {
  /** The last head that `read` has parsed. */
  readonly head = new RequestHead();
  /** Index after that head. */
  end = 0;
  /** Why `read` has rejected the head, or undefined. */
  error: HeadError | undefined;
  /** Bytes of an incomplete head that were checked already and may begin a valid one. */
  #scanned = 0;

  /** `read` has seen the beginning of a head. */
  get begun(): boolean {
    return this.#scanned > 0;
  }

  /** Releases the last head: its strings are slices that keep the text of the whole head alive, which an idle connection does not need. */
  forget(): void {
    const { head } = this;
    if (head.target === "") return;
    head.method = head.target = head.upgrade = head.traceToken = head.loop = "";
    head.headers = [];
    head.rawNames = null;
    head.host = undefined;
  }

  /** Reads a head that begins at `start`. Undefined: see `error`; without an error, the head is incomplete. */
  read(
    buffer: Buffer,
    start: number,
    to: number,
    frontend: ConnectionLimits,
    scheme: HttpRequest["scheme"],
  ): HttpRequest | undefined {
    // Some clients send an empty line after a body; one is allowed before a request line (RFC 9112 2.2).
    const from = skipLeadingCrlf(buffer, start, to);
    const seen = start + this.#scanned;
    const headEnd = findHeadEnd(buffer, Math.max(from, seen - 3), to);
    if (headEnd === -1) {
      this.error = prefixError(buffer, from, to, Math.max(from, seen)) ?? tooLong(buffer, from, to, frontend);
      this.#scanned = to - start;
      return undefined;
    }
    this.#scanned = 0;
    this.end = headEnd;
    // Measured without the empty line before it, as the limit is documented.
    if (headEnd - from > frontend.maxHeadSize) {
      this.error = tooLarge(false, frontend.maxHeadSize);
      return undefined;
    }
    const { head } = this;
    const text = latin1Slice(buffer, from, headEnd);
    this.error = parseRequestHead(text, frontend, head, frontend.headerCase === "preserve");
    if (this.error !== undefined) return undefined;
    if (head.hasUnderscore && frontend.underscores === "reject") {
      this.error = UNDERSCORE;
      return undefined;
    }
    if (head.hasUnderscore && frontend.underscores === "drop") dropUnderscores(head);
    const request: HttpRequest = {
      method: head.method,
      scheme,
      authority: "",
      path: "",
      search: "",
      version: head.minor === 1 ? "HTTP/1.1" : "HTTP/1.0",
      headers: head.headers,
    };
    this.error = parseTarget(head.method, head.target, head.host, head.minor, request);
    if (this.error !== undefined) return undefined;
    // An absolute-form target may say https; the connection's scheme counts.
    request.scheme = scheme;
    const limit = frontend.maxRequestBodySize;
    if (limit === 0 || head.contentLength <= limit) return request;
    this.error = { code: "TG_BODY_TOO_LARGE", detail: `more than ${limit} bytes` };
    return undefined;
  }
}

/** CGI and its successors map `X_Real_IP` and `X-Real-IP` to the same variable, so a client could forge the second with the first. */
function dropUnderscores(head: RequestHead): void {
  const { headers, rawNames } = head;
  const kept = (name: string): boolean => !name.includes("_");
  head.headers = headers.filter((_, i) => kept(headers[i - (i % 2)] as string));
  head.rawNames = rawNames?.filter(kept) ?? null;
  head.hasUnderscore = false;
}

/** The error of an incomplete head that is too long already: 414 inside the request line, otherwise 431 (RFC 9110 15.5.15, RFC 6585 5). */
function tooLong(buffer: Buffer, from: number, to: number, { maxHeadSize }: ConnectionLimits): HeadError | undefined {
  if (to - from <= maxHeadSize) return undefined;
  const line = buffer.indexOf(10, from);
  return tooLarge(line === -1 || line >= to, maxHeadSize);
}

function tooLarge(insideLine: boolean, limit: number): HeadError {
  return insideLine
    ? { code: "TG_URI_TOO_LONG", detail: `the request line is longer than ${limit} bytes` }
    : { code: "TG_HEAD_TOO_LARGE", detail: `more than ${limit} bytes` };
}
