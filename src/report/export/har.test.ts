import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Fields } from "../../base/fields.ts";
import { EVENTS } from "../fixtures/trace.ts";
import { rowsOf } from "../rows.ts";
import { harOf } from "./har.ts";

/** The archive, as its readers parse it. */
function har(events: readonly Fields[]) {
  return JSON.parse(JSON.stringify(harOf(rowsOf(events)))).log;
}

function event(eventEnd: number, message: Fields, eventStart: number | null = null): Fields {
  return { eventStart, eventEnd, severity: "info", message };
}

const REQUEST = {
  method: "GET",
  uri: "https://shop.example/a?x=1&y",
  version: "HTTP/2",
  headers: { host: "shop.example", "x-name": "Ã©" },
  startTime: "2026-03-02T10:20:30.500Z",
};

/** Two attempts: the first fails to connect, the second opens a connection with TLS. */
const RETRIED: readonly Fields[] = [
  event(1, { type: "requestStarted" }),
  event(10, { type: "requestSnapshot", stage: "initial request", requestState: { request: REQUEST } }),
  event(100, { type: "requestSnapshot", stage: "final request", requestState: { request: REQUEST } }),
  event(110, { type: "backendCallStart", target: "10.0.0.1:80" }),
  event(2110, { type: "backendCallResult", status: null, error: "connection refused" }, 110),
  event(3000, { type: "requestSnapshot", stage: "final request", requestState: { request: REQUEST } }),
  event(3010, { type: "backendCallStart", target: "[::1]:81" }),
  event(
    9010,
    {
      type: "backendCallResult",
      status: 200,
      error: null,
      timing: {
        reusedConnection: false,
        dns: "0.000500000s",
        connect: "0.001000000s",
        tls: "0.002000000s",
        firstByte: "0.002000000s",
      },
    },
    3010,
  ),
  event(9100, {
    type: "responseSnapshot",
    stage: "raw response",
    requestState: { response: { code: 200, headers: { "content-encoding": "gzip" } } },
  }),
  event(9200, {
    type: "responseSnapshot",
    stage: "final response",
    requestState: { response: { code: 200, headers: { "content-encoding": "gzip", "content-type": "text/plain" } } },
  }),
  event(9900, { type: "bodySnapshot", stage: "response", body: gzipSync("héllo").toString("base64") }),
  event(10_000, { type: "requestFinished", status: 200, error: null }),
];

test("an entry for the client's request and one for each attempt, with their times", () => {
  const { version, creator, pages, entries } = har(RETRIED);
  assert.deepEqual([version, creator.name, pages.length], ["1.2", "tracegate", 1]);
  const shown = [];
  for (const { startedDateTime, time, request, response } of entries)
    shown.push([startedDateTime, time, request.url, response.status]);
  assert.deepEqual(shown, [
    ["2026-03-02T10:20:30.500Z", 10, "https://shop.example/a?x=1&y", 200],
    ["2026-03-02T10:20:30.500Z", 2, "https://10.0.0.1:80/a?x=1&y", 0],
    ["2026-03-02T10:20:30.503Z", 6, "https://[::1]:81/a?x=1&y", 200],
  ]);
  const [client, failed, answered] = entries;
  assert.deepEqual(client.timings, { blocked: -1, dns: -1, connect: -1, ssl: -1, send: 0, wait: 9.2, receive: 0.8 });
  assert.equal(failed.response._error, "connection refused");
  assert.deepEqual(answered.timings, { blocked: -1, dns: 0.5, connect: 3, ssl: 2, send: 0, wait: 2, receive: 0.5 });
  assert.deepEqual([failed.serverIPAddress, answered.serverIPAddress], ["10.0.0.1", "::1"]);
});

test("bodies are decoded, header values and parameters are readable", () => {
  const [{ request, response }] = har(RETRIED).entries;
  assert.deepEqual(response.content, { size: 6, mimeType: "text/plain", text: "héllo" });
  assert.equal(response.bodySize, gzipSync("héllo").length);
  assert.deepEqual(request.headers[1], { name: "x-name", value: "é" });
  assert.deepEqual(request.queryString, [
    { name: "x", value: "1" },
    { name: "y", value: "" },
  ]);
  const ofPolicy = { ...event(9950, { type: "bodySnapshot", stage: "response", body: "YWJj" }), scope: ["extAuthz"] };
  assert.deepEqual(
    har([...RETRIED, ofPolicy]).entries[0].response.content,
    response.content,
    "calls of policies have bodies too",
  );
  const [posted] = har(EVENTS).entries;
  assert.equal(posted.request.postData.text, '{"item":"teapot","count":2}');
});

test("a binary body is in base64; one that was cut short says so", () => {
  const bytes = Buffer.from([0, 255, 1]).toString("base64");
  const [, , , , , , , , , , body] = RETRIED;
  assert.ok(body !== undefined);
  const cut = event(9900, { type: "bodySnapshot", stage: "response", body: bytes, truncated: true });
  const events = RETRIED.map((each) => (each === body ? cut : each));
  const { content } = har(events).entries[0].response;
  assert.deepEqual(content, { size: 3, mimeType: "text/plain", text: bytes, encoding: "base64", comment: "cut short" });
});

test("a request without a response, and a trace without a request", () => {
  const [entry] = har([
    ...RETRIED.slice(0, 2),
    event(50, { type: "requestFinished", status: null, error: "the client has disconnected" }),
  ]).entries;
  assert.deepEqual([entry.response.status, entry.response._error], [0, "the client has disconnected"]);
  assert.equal(harOf(rowsOf([event(1, { type: "requestStarted" })])), undefined);
});
