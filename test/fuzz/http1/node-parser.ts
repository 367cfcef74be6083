/** Reads a byte stream with the parser that `node:http` uses, in its strict default mode. */
import { METHODS } from "node:http";
import { createRequire } from "node:module";
import type { Message } from "./message.ts";

type Callback = (...values: never[]) => unknown;
interface NodeParser {
  initialize(type: number, resource: object, maxHeaderSize: number, lenientFlags: number): void;
  execute(buffer: Buffer): number | Error;
  [callback: number]: Callback;
}
interface NodeParserClass {
  new (): NodeParser;
  readonly REQUEST: number;
  readonly kOnHeaders: number;
  readonly kOnHeadersComplete: number;
  readonly kOnBody: number;
  readonly kOnMessageComplete: number;
}

const { HTTPParser } = createRequire(import.meta.url)("node:_http_common") as { HTTPParser: NodeParserClass };
const MAX_HEAD_SIZE = 64 * 1024;

interface Reading {
  method: number;
  target: string;
  version: string;
  fields: string[];
  /** Fields after the head: the trailers. */
  headDone: boolean;
  trailers: string[];
  body: string;
}

function newReading(): Reading {
  return { method: -1, target: "", version: "", fields: [], headDone: false, trailers: [], body: "" };
}

/** Reports each complete request; `method` is the parser's own number. */
function read(stream: Buffer, report: (reading: Reading) => void): void {
  const parser = new HTTPParser();
  parser.initialize(HTTPParser.REQUEST, {}, MAX_HEAD_SIZE, 0);
  let reading = newReading();
  // Called with part of the fields when there are many, and for trailers.
  parser[HTTPParser.kOnHeaders] = (fields: string[], target: string) => {
    (reading.headDone ? reading.trailers : reading.fields).push(...fields);
    if (!reading.headDone) reading.target += target;
  };
  parser[HTTPParser.kOnHeadersComplete] = (
    major: number,
    minor: number,
    fields: string[] | undefined,
    method: number,
    target: string | undefined,
  ) => {
    reading.headDone = true;
    reading.version = `${major}.${minor}`;
    reading.method = method;
    if (fields !== undefined) reading.fields.push(...fields);
    if (target !== undefined) reading.target += target;
    // 0: there may be a body, and no protocol is switched.
    return 0;
  };
  parser[HTTPParser.kOnBody] = (bytes: Buffer) => {
    reading.body += bytes.toString("latin1");
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    report(reading);
    reading = newReading();
  };
  // It stops after a request that offers an upgrade, so that the caller may take it; here nobody does.
  for (let at = 0; at < stream.length; ) {
    const used = parser.execute(stream.subarray(at));
    if (typeof used !== "number" || used === 0) return;
    parser.initialize(HTTPParser.REQUEST, {}, MAX_HEAD_SIZE, 0);
    at += used;
  }
}

const METHOD_NAMES = new Map<number, string>();
for (const method of METHODS) {
  const target = method === "CONNECT" ? "a:1" : "/";
  read(Buffer.from(`${method} ${target} HTTP/1.1\r\nhost: a\r\n\r\n`), (reading) => {
    METHOD_NAMES.set(reading.method, method);
  });
}

/** The requests that Node reads from `stream` before it refuses something or needs more bytes. */
export function readWithNode(stream: Buffer): Message[] {
  const messages: Message[] = [];
  read(stream, (reading) => {
    const headers = lowerCased(reading.fields);
    const nominated = headers
      .flatMap((name, i) => (i % 2 === 0 && name === "connection" ? (headers[i + 1] ?? "").split(",") : []))
      .map((name) => name.trim().toLowerCase());
    messages.push({
      method: METHOD_NAMES.get(reading.method) ?? "",
      target: reading.target,
      version: reading.version,
      headers: without(headers, new Set([...HOP_BY_HOP, ...nominated])).map(withoutLeadingZeros),
      body: reading.body,
      trailers: without(lowerCased(reading.trailers), NO_TRAILERS),
    });
  });
  return messages;
}

/** What a gateway does not pass on to the next hop, Host aside, which it writes itself. */
const HOP_BY_HOP = [
  "connection",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/** Fields of the generator that must not come as trailers (RFC 9110 6.5.1). */
const NO_TRAILERS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "content-type",
  "cookie",
  "expect",
  "via",
  "x-forwarded-for",
]);

function lowerCased(fields: readonly string[]): string[] {
  return fields.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text));
}

/** The gateway passes on `007` as `7`. */
function withoutLeadingZeros(text: string, i: number, fields: readonly string[]): string {
  return i % 2 === 1 && fields[i - 1] === "content-length" ? text.replace(/^0+(?=.)/, "") : text;
}

function without(fields: readonly string[], names: ReadonlySet<string>): string[] {
  return fields.filter((_, i) => !names.has(fields[i - (i % 2)] ?? ""));
}
