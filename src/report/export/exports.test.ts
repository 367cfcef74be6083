import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fields } from "../../base/fields.ts";
import type { RequestRecord } from "../../recorder/records.ts";
import { exportedRecord, exportedTrace } from "./exports.ts";
import { EXPORT_FORMATS } from "./formats.ts";

const RECORD: RequestRecord = {
  time: "2026-01-31T12:00:00.000Z",
  worker: 0,
  number: 7,
  generation: 2,
  method: "GET",
  host: "shop.example",
  path: "/cart",
  version: "HTTP/1.1",
  status: 503,
  reason: "UpstreamFailure",
  duration: 10,
  beforeCall: 1,
  untilAnswer: 6,
  received: 3,
  sent: 20,
  bind: "bind/8443",
  tls: true,
};

test("a trace is exported without secrets, also if it was recorded with them", async () => {
  const headers = { host: "shop.example", authorization: "Bearer planted-secret" };
  const request = {
    method: "GET",
    uri: "http://shop.example/?access_token=planted-secret",
    version: "HTTP/1.1",
    headers,
  };
  const events: readonly Fields[] = [
    { eventStart: null, eventEnd: 1, severity: "info", message: { type: "requestStarted" } },
    {
      eventStart: null,
      eventEnd: 2,
      severity: "info",
      message: { type: "requestSnapshot", stage: "initial request", requestState: { request } },
    },
  ];
  for (const format of EXPORT_FORMATS) {
    const text = (await exportedTrace(format, events)) ?? "";
    assert.match(text, /shop\.example/, format);
    assert.doesNotMatch(text, /planted-secret/, format);
  }
});

test("a record as a HAR has the request, how it ended, and how its time was spent", async () => {
  const text = await exportedRecord("har", { outcomes: [], generation: 2, record: RECORD });
  const [{ request, response, timings, time, comment }] = JSON.parse(text ?? "").log.entries;
  assert.deepEqual([request.url, request.bodySize], ["https://shop.example:8443/cart", 3]);
  assert.deepEqual([response.status, response.bodySize], [503, 20]);
  assert.deepEqual([timings.wait, timings.receive, time], [7, 3, 10]);
  assert.match(comment, /without fields, query and bodies/);
});

test("a record without a response is an error in both formats, and says what decided", async () => {
  const record = { ...RECORD, status: 0, reason: "ClientGone" } as const;
  const text = await exportedRecord("har", { outcomes: [], generation: 2, record });
  const [{ response, comment }] = JSON.parse(text ?? "").log.entries;
  assert.equal(response.status, 0);
  assert.ok(response._error !== "" && comment.endsWith(response._error), JSON.stringify({ response, comment }));
  assert.match((await exportedRecord("html", { outcomes: [], generation: 2, record })) ?? "", /<h1 class="error">/);
});

test("a record as a page says with which configuration it is explained; connections have no HAR", async () => {
  const page = (generation: number) => exportedRecord("html", { outcomes: [], generation, record: RECORD });
  assert.match((await page(2)) ?? "", /Recorded and explained with configuration 2\./);
  assert.match((await page(3)) ?? "", /Recorded with configuration 2, explained with 3\./);
  assert.match((await page(2)) ?? "", /<h1 class="error">GET shop\.example\/cart <span>→ 503<\/span>/);
  const { method: _, host: __, ...connection } = RECORD;
  const record = { ...connection, kind: "session" } as const;
  assert.equal(await exportedRecord("har", { outcomes: [], generation: 2, record }), undefined);
});
