/**
 * Time to parse a browser's request head with the gateway's parser and with Node's own, in the same process by turns.
 * Run: node bench/micro/parse-head.ts
 */
import { createRequire } from "node:module";
import { findHeadEnd } from "../../src/http/h1/head-end.ts";
import { parseRequestHead, RequestHead } from "../../src/http/h1/parse-head.ts";
import type { HttpRequest } from "../../src/http/message/message.ts";
import { parseTarget } from "../../src/http/message/target.ts";
import { latin1Slice } from "../../src/net/node-internals.ts";

const HEAD = Buffer.from(
  [
    "GET /assets/app.js?v=20240611 HTTP/1.1",
    "Host: www.example.com",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: gzip, deflate, br",
    "Connection: keep-alive",
    "Cookie: session=3f0c2b6e8d8a4f5c; theme=dark",
    "",
    "",
  ].join("\r\n"),
  "latin1",
);
const LIMITS = { maxHeaders: 100, maxTargetSize: 8192 };
const ITERATIONS = 200_000;
const ROUNDS = 9;

interface NodeParser {
  initialize(type: number, resource: object): void;
  execute(buffer: Buffer): number | Error;
  [callback: number]: unknown;
}
interface NodeParserClass {
  new (): NodeParser;
  readonly REQUEST: number;
  readonly kOnHeadersComplete: number;
}

const buffer = Buffer.alloc(64 * 1024);
HEAD.copy(buffer);
const head = new RequestHead();

function ours(): number {
  const end = findHeadEnd(buffer, 0, HEAD.length);
  const text = latin1Slice(buffer, 0, end);
  if (parseRequestHead(text, LIMITS, head, false) !== undefined) throw new Error("the head was rejected");
  return head.headers.length;
}

function oursWithTarget(): number {
  const fields = ours();
  const request: HttpRequest = {
    method: head.method,
    scheme: "http",
    authority: "",
    path: "",
    search: "",
    version: "HTTP/1.1",
    headers: head.headers,
  };
  if (parseTarget(head.method, head.target, head.host, head.minor, request) !== undefined) throw new Error("refused");
  return fields + request.path.length;
}

function nodes(): () => number {
  const require = createRequire(import.meta.url);
  const { HTTPParser } = require("node:_http_common") as { HTTPParser: NodeParserClass };
  const parser = new HTTPParser();
  let fields = 0;
  parser.initialize(HTTPParser.REQUEST, {});
  parser[HTTPParser.kOnHeadersComplete] = (_major: number, _minor: number, headers: string[]) => {
    fields = headers.length;
    return 0;
  };
  return () => {
    parser.execute(HEAD);
    return fields;
  };
}

function microseconds(run: () => number): number {
  let sum = 0;
  const start = process.hrtime.bigint();
  for (let i = 0; i < ITERATIONS; i++) sum += run();
  if (sum === 0) throw new Error("nothing was parsed");
  return Number(process.hrtime.bigint() - start) / ITERATIONS / 1000;
}

const runs = { ours, "ours with target": oursWithTarget, node: nodes() };
const best = new Map<string, number>();
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, run] of Object.entries(runs)) {
    best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, microseconds(run)));
  }
}
const node = best.get("node") ?? Number.NaN;
for (const [name, time] of best) console.log(`${name}: ${time.toFixed(2)} µs, ${(time / node).toFixed(2)} of node's`);
