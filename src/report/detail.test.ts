import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { type Detail, detailOf, detailText } from "./detail.ts";
import { EVENTS } from "./fixtures/trace.ts";
import { READINGS } from "./formats.ts";
import { type Row, rowOf, rowsOf } from "./rows.ts";
import { duration } from "./text.ts";

const rows = rowsOf(EVENTS);
const rowWith = (summary: string) => rows.find((row) => row.summary === summary);
const texts = (detail: Detail) => detail.lines.map((line) => line.text);

test("a raw event is shown as YAML or JSON with its time", () => {
  const row = rowWith("status=503");
  const yaml = detailOf(row, "raw", READINGS.yaml);
  assert.equal(yaml.title, "Raw event · at 2.385 ms, took 2.122 ms");
  assert.deepEqual(texts(yaml).slice(0, 3), ["eventStart: 263", "eventEnd: 2385", "severity: error"]);
  assert.deepEqual(JSON.parse(detailText(detailOf(row, "raw", READINGS.json))), row?.event);
});

test("the reasons of all candidate routes can be read", () => {
  const route = rows.find((row) => row.label === "Route");
  const lines = texts(detailOf(route, "raw", READINGS.yaml));
  assert.deepEqual(lines.slice(0, 6), [
    "── candidates ──",
    "✓ cart        selected",
    "✓ everything  precedence: /api is longer than /",
    "✗ assets      path: /api/cart does not begin with /assets",
    "",
    "── event ──",
  ]);
  assert.ok(lines.includes("  selectedRoute: default/default/bind/3000/listener0/default/cart"), "the whole key");
});

/** The row of a body snapshot behind a response with these headers. */
function bodyRow(body: Uint8Array | string, headers: Record<string, string> = {}, truncated = false) {
  const state = {
    message: { type: "responseSnapshot", stage: "final response", requestState: { response: { headers } } },
  };
  const message = { type: "bodySnapshot", stage: "response", body: Buffer.from(body).toString("base64"), truncated };
  return rowOf({ message }, rowOf(state, undefined));
}
const bodyLines = (row: Row) => {
  const lines = texts(detailOf(row, "raw", READINGS.yaml));
  return lines.slice(0, lines.indexOf("── event ──"));
};

test("a body snapshot shows its text before the event with the base64", () => {
  assert.deepEqual(bodyLines(bodyRow("one\ntwo", {}, true)), ["── body: 7 bytes, cut short ──", "one", "two", ""]);
  assert.deepEqual(bodyLines(bodyRow('{"a":[1]}')), ["── body: 9 bytes ──", "{", '  "a": [', "    1", "  ]", "}", ""]);
  assert.deepEqual(bodyLines(bodyRow(Buffer.from([0, 255]))), ["── body: 2 bytes, binary ──", ""]);
  assert.deepEqual(bodyLines(bodyRow("")), ["── body: 0 bytes ──", ""]);
  assert.ok(texts(detailOf(bodyRow("one"), "raw", READINGS.yaml)).includes("  body: b25l"));
});

test("a message shows its text too, whatever the encoding of bodies", () => {
  const head = { type: "requestSnapshot", requestState: { request: { headers: { "content-encoding": "gzip" } } } };
  const message = (more: object) =>
    rowOf({ message: { type: "streamMessage", ...more } }, rowOf({ message: head }, undefined));
  assert.deepEqual(bodyLines(message({ body: "aGVsbG8=", truncated: true })), [
    "── body: 5 bytes, cut short ──",
    "hello",
    "",
  ]);
  const compressed = message({ body: Buffer.from([0, 255]).toString("base64"), compressed: true });
  assert.deepEqual(bodyLines(compressed), ["── body: 2 bytes, compressed, not decoded, binary ──", ""]);
});

test("a compressed body is decoded by its content-encoding, also when it is cut short", () => {
  const codings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync } as const;
  for (const [coding, compress] of Object.entries(codings)) {
    const bytes = compress("a text");
    const shown = bodyLines(bodyRow(bytes, { "content-encoding": coding }));
    assert.deepEqual(shown, [`── body: ${bytes.length} bytes, ${coding} ──`, "a text", ""], coding);
  }
  const long = randomBytes(300_000).toString("hex");
  for (const [coding, compress] of Object.entries(codings)) {
    const cut = bodyLines(bodyRow(compress(long).subarray(0, 200_000), { "content-encoding": coding }, true));
    assert.equal(cut[0], `── body: 200000 bytes, ${coding}, cut short, the first 64 KiB of its text ──`);
    assert.equal(cut[1], long.slice(0, 65_536), coding);
  }
  assert.deepEqual(bodyLines(bodyRow("no gzip", { "content-encoding": "gzip" })), [
    "── body: 7 bytes, gzip, not decoded ──",
    "no gzip",
    "",
  ]);
});

test("the body of a request has the encoding of its fields, whatever came between", () => {
  const headers = { "content-encoding": "gzip" };
  const between = { message: { type: "responseSnapshot", requestState: { response: { headers: {} } } } };
  const body = gzipSync("a text").toString("base64");
  const row = rowsOf([
    { message: { type: "requestSnapshot", requestState: { request: { headers } } } },
    between,
    { message: { type: "bodySnapshot", stage: "final request", body } },
  ]).at(-1);
  assert.equal(row && bodyLines(row)[1], "a text");
});

test("a compressed body that grows beyond all measure is not decoded, and of a long one the beginning is shown", () => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  assert.match(bodyLines(bodyRow(bomb, { "content-encoding": "gzip" }))[0] ?? "", /gzip, not decoded, binary ──$/);
  const long = bodyRow("x".repeat(100_000));
  assert.match(detailText(detailOf(long, "raw", READINGS.yaml)), /\n {2}body: (?:eHh4){1024}… \(133336 characters\)/);
  const [heading, text] = bodyLines(long);
  assert.equal(heading, "── body: 100000 bytes, the first 64 KiB of its text ──");
  assert.equal(text?.length, 65_536);
});

test("header values in UTF-8 are shown as such, others as they came", () => {
  const latin1 = (text: string) => Buffer.from(text).toString("latin1");
  const headers = { "x-city": latin1("Zürich"), "x-latin": "Z\u00fcrich", "x-snow": latin1("☃") };
  const requestState = { request: { headers }, env: {} };
  const row = rowOf({ message: { type: "requestSnapshot", stage: "s", requestState } }, undefined);
  for (const mode of ["raw", "snapshot"] as const) {
    const shown = detailText(detailOf(row, mode, READINGS.yaml));
    assert.match(shown, /x-city: Zürich\n *x-latin: Zürich\n *x-snow: ☃/);
  }
});

test("the snapshot mode shows the latest state at or before the row", () => {
  const detail = detailOf(rowWith("127.0.0.1:9000"), "snapshot", READINGS.yaml);
  assert.equal(detail.title, "Snapshot · final request");
  assert.ok(texts(detail).includes("  path: /cart"));
});

test("bodies inside a state are decoded, absent values left out", () => {
  const requestState = { request: { body: btoa('{"a":1}'), host: null }, response: { body: "not base64!" }, env: {} };
  const row = rowOf({ message: { type: "requestSnapshot", stage: "s", requestState } }, undefined);
  assert.deepEqual(JSON.parse(detailText(detailOf(row, "snapshot", READINGS.json))), {
    request: { body: { a: 1 } },
    response: { body: "not base64!" },
    env: {},
  });
});

test("the diff mode shows what changed since the snapshot before", () => {
  const detail = detailOf(rowWith("route policies"), "diff", READINGS.yaml);
  const changed = detail.lines.filter((line) => line.sign !== undefined).map((line) => line.text.trim());
  assert.deepEqual(changed, [
    "-   uri: http://shop.example.com/api/cart?debug=1",
    "-   path: /api/cart",
    "-   pathAndQuery: /api/cart?debug=1",
    "+   uri: http://shop.example.com/cart?debug=1",
    "+   path: /cart",
    "+   pathAndQuery: /cart?debug=1",
    "+     x-tenant: a",
  ]);
  const shown = texts(detail);
  assert.deepEqual(shown.slice(0, 4), [
    "  request:",
    "    method: POST",
    "-   uri: http://shop.example.com/api/cart?debug=1",
    "-   path: /api/cart",
  ]);
  assert.ok(shown.includes("    headers:"), "the key that a change stands below");
  assert.ok(shown.includes("  …") && !shown.includes("    version: HTTP/1.1"), "other lines are left out");
  assert.deepEqual(detailOf(rowWith("gateway policies"), "diff", READINGS.yaml), {
    title: "Snapshot diff · gateway policies",
    lines: [{ text: "no change", note: true }],
  });
  assert.equal(
    detailOf(rowWith("initial request"), "diff", READINGS.yaml).title,
    "Snapshot diff · initial request · first",
  );
});

test("the diff mode of a policy shows what the policy says that it changed", () => {
  const snapshot = { before: { pathAndQuery: "/api/hello" }, after: { pathAndQuery: "/hello" } };
  const result = { type: "apply", details: "path.prefix=/", snapshot };
  const detail = detailOf(
    rowOf({ message: { type: "policy", kind: "url_rewrite", result } }, undefined),
    "diff",
    READINGS.yaml,
  );
  assert.equal(detail.title, "Policy diff · url_rewrite");
  assert.deepEqual(texts(detail), ["- pathAndQuery: /api/hello", "+ pathAndQuery: /hello"]);
});

test("values cannot control the terminal", () => {
  const row = rowOf({ message: { type: "message", text: "a\u001b]0;owned\u0007\u009b2Jb" } }, undefined);
  const control = /\p{Cc}/u;
  assert.doesNotMatch(row.summary, control);
  for (const mode of ["raw", "snapshot"] as const) {
    for (const line of texts(detailOf(row, mode, READINGS.yaml))) assert.doesNotMatch(line, control);
  }
});

test("durations are readable", () => {
  assert.deepEqual([7, 2385, 1_250_000].map(duration), ["7 µs", "2.385 ms", "1.25 s"]);
});
