import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import type { HttpResponse } from "../../http/message/message.ts";
import { contextOf, creatorOf, RecordedTrace } from "../testing/context.ts";
import { compileContentTypes, compression } from "./index.ts";
import { schema } from "./schema.ts";

const policy = creatorOf(compression)(schema.parse({ encodings: ["gzip"], minSize: 10 }));
const BODY = "many words, many words, many words";

interface Outcome {
  readonly headers: Readonly<Record<string, string>>;
  /** Decompressed where the head says so. */
  readonly body: string;
  readonly events: readonly unknown[];
}

/** What a client that accepts gzip gets when the backend responds with JSON and these fields. */
async function answer(
  fields: Readonly<Record<string, string>>,
  { status = 200, method = "GET", request = {} as Readonly<Record<string, string>> } = {},
): Promise<Outcome> {
  const trace = new RecordedTrace();
  const headers = Object.entries({ "accept-encoding": "gzip", ...request }).flat();
  const context = contextOf({ method, headers }, { trace, responseBody: BODY });
  policy.onRequest?.(context);
  // What other policies do to the field afterwards does not matter.
  context.request.headers = Object.entries(request).flat();
  const all = { "content-type": "application/json", "content-length": String(BODY.length), ...fields };
  const response: HttpResponse = { status, headers: Object.entries(all).flat() };
  await policy.onResponse?.(context, response);
  const map: Record<string, string> = {};
  for (let i = 0; i < response.headers.length; i += 2)
    map[response.headers[i] as string] = response.headers[i + 1] as string;
  const whole = (await context.responseBody.buffer(1e6)) ?? new Uint8Array();
  const body = map["content-encoding"] === "gzip" && method !== "HEAD" ? gunzipSync(whole) : whole;
  return { headers: map, body: Buffer.from(body).toString(), events: trace.events };
}

test("a compressed response says so, varies by Accept-Encoding, has a weak tag and no ranges", async () => {
  const { headers, body, events } = await answer({ etag: '"a"', "accept-ranges": "bytes", vary: "Origin" });
  assert.equal(body, BODY);
  assert.equal(headers["content-encoding"], "gzip");
  assert.equal(headers.etag, 'W/"a"');
  assert.equal(headers["accept-ranges"], undefined);
  assert.equal(headers.vary, "accept-encoding");
  assert.deepEqual(events, [{ kind: "compression", details: { encoding: "gzip", level: 5 } }]);
});

test("Vary is not repeated, and a weak tag stays as it is", async () => {
  for (const vary of ["*", "Origin, Accept-Encoding"])
    assert.equal((await answer({ vary, etag: 'W/"a"' })).headers.vary, vary);
  assert.equal((await answer({ etag: 'W/"a"' })).headers.etag, 'W/"a"');
});

test("what must not or need not be compressed passes unchanged, and the trace says why", async () => {
  const cases: [string, Readonly<Record<string, string>>, Parameters<typeof answer>[1]?][] = [
    ["the response is encoded already", { "content-encoding": "br" }],
    ["the response is encoded already", { "content-encoding": "identity" }],
    ["cache-control says no-transform", { "cache-control": "public, No-Transform" }],
    ["cache-control says no-transform", {}, { request: { "cache-control": "no-transform" } }],
    ["the response has a digest, which would be wrong afterwards", { "repr-digest": "sha-256=:AAAA:" }],
    ["the response has a digest, which would be wrong afterwards", { trailer: "X-Sum, Content-Digest" }],
    ["contentTypes does not list image/png", { "content-type": "image/png" }],
    ["9 bytes are less than minSize 10", { "content-length": "9" }],
    ["the response is a part of the content", { "content-range": "bytes 0-9/99" }, { status: 206 }],
    ["the response has no content", {}, { status: 204 }],
  ];
  for (const [reason, fields, more] of cases) {
    const { headers, events } = await answer({ etag: '"a"', ...fields }, more);
    assert.deepEqual(events, [{ kind: "compression", reason }]);
    assert.equal(headers.etag, '"a"', reason);
    assert.equal(headers.vary, undefined, reason);
    assert.equal(headers["content-encoding"], fields["content-encoding"], reason);
  }
});

test("a client that accepts no encoding gets the response as it is, but caches learn that it varies", async () => {
  const { headers, body } = await answer({ etag: '"a"' }, { request: { "accept-encoding": "br" } });
  assert.equal(body, BODY);
  assert.equal(headers["content-encoding"], undefined);
  assert.equal(headers.etag, '"a"');
  assert.equal(headers.vary, "accept-encoding");
});

test("the response to HEAD has the fields that GET would get, without a length", async () => {
  const { headers } = await answer({ etag: '"a"' }, { method: "HEAD" });
  assert.equal(headers["content-encoding"], "gzip");
  assert.equal(headers["content-length"], undefined);
  assert.equal(headers.etag, 'W/"a"');
});

test("a 304 for content that was compressed has the weak tag of that content", async () => {
  const notModified = async (known: string) =>
    (await answer({ etag: '"a"', "accept-ranges": "bytes" }, { status: 304, request: { "if-none-match": known } }))
      .headers;
  // Its length and ranges would be those of the content that is not compressed.
  assert.deepEqual(await notModified('"b", W/"a"'), {
    "content-type": "application/json",
    etag: 'W/"a"',
    vary: "accept-encoding",
  });
  assert.equal((await notModified('"a"')).etag, '"a"');
});

test("settings that cannot work are rejected", () => {
  for (const [config, message] of [
    [{ encodings: ["gzip", "gzip"] }, /listed twice/],
    [{ encodings: ["deflate"] }, /zstd/],
    [{ contentTypes: ["text"] }, /not a media type/],
    [{ contentTypes: ["*/*"] }, /not a media type/],
    [{ levels: { br: 11 } }, /6/],
  ] as const)
    assert.throws(() => schema.parse(config), message);
});

test("patterns cover types and suffixes, in any case and with parameters", () => {
  const isListed = compileContentTypes(["text/*", "application/*+json", "image/SVG+xml"]);
  for (const type of ["text/html", "Text/HTML; charset=utf-8", "application/problem+json;v=1", "image/svg+xml"])
    assert.ok(isListed(type), type);
  for (const type of ["", "text", "application/json", "application/x+jsonp", "image/png", "x-text/html"])
    assert.ok(!isListed(type), type);
});

test("event streams match only by their full name, gRPC never", () => {
  assert.ok(!compileContentTypes(["text/*"])("text/event-stream"));
  assert.ok(compileContentTypes(["text/event-stream"])("text/event-stream;charset=utf-8"));
  assert.ok(!compileContentTypes(["application/*"])("application/grpc+proto"));
});
