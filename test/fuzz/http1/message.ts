/** A request as both parsers report it, and the reading of a byte stream with the gateway's own parser. */
import { ChunkedDecoder } from "../../../src/http/h1/chunked.ts";
import { findHeadEnd, skipLeadingCrlf } from "../../../src/http/h1/head-end.ts";
import { parseRequestHead, RequestHead } from "../../../src/http/h1/parse-head.ts";
import type { HeaderList } from "../../../src/http/message/message.ts";
import { parseTarget, type TargetParts } from "../../../src/http/message/target.ts";
import { latin1Slice } from "../../../src/net/node-internals.ts";

/** One request with its body; header names are lower-case and fields that end at this hop are left out. */
export interface Message {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly headers: HeaderList;
  readonly body: string;
  readonly trailers: HeaderList;
}

const TAB_AFTER_CODING = /^transfer-encoding:[^\r]*\t[ \t]*\r$/im;
const LIMITS = { maxHeaders: 100, maxTargetSize: 8192 };

/**
 * The requests that the gateway reads from `stream` before it refuses something, needs more bytes, or sees the last
 * request of the connection. A request counts when its body is complete.
 */
export function readWithGateway(stream: Buffer): Message[] {
  const messages: Message[] = [];
  const head = new RequestHead();
  const decoder = new ChunkedDecoder();
  const parts: TargetParts = { authority: "", path: "", search: "", scheme: "http" };
  let at = 0;
  for (;;) {
    const start = skipLeadingCrlf(stream, at, stream.length);
    const end = findHeadEnd(stream, start, stream.length);
    if (end < 0) return messages;
    if (parseRequestHead(latin1Slice(stream, start, end), LIMITS, head, false) !== undefined) return messages;
    if (parseTarget(head.method, head.target, head.host, head.minor, parts) !== undefined) return messages;
    // Node refuses a tab there, which RFC 9110 5.6.3 allows: nothing that follows can be compared.
    if (head.chunked && TAB_AFTER_CODING.test(latin1Slice(stream, start, end))) return messages;
    let body = "";
    at = end;
    if (head.chunked) {
      decoder.reset();
      const sink = {
        onBody: (buffer: Buffer, from: number, to: number): void => {
          body += latin1Slice(buffer, from, to);
        },
      };
      at = decoder.push(stream, at, stream.length, sink);
      if (!decoder.done) return messages;
    } else if (head.contentLength > 0) {
      if (stream.length - at < head.contentLength) return messages;
      body = latin1Slice(stream, at, at + head.contentLength);
      at += head.contentLength;
    }
    messages.push({
      method: head.method,
      target: head.target,
      version: `1.${head.minor}`,
      headers: head.headers,
      body,
      trailers: head.chunked ? decoder.trailers : [],
    });
    if (!head.keepAlive || head.method === "CONNECT") return messages;
  }
}
