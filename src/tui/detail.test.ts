import assert from "node:assert/strict";
import { test } from "node:test";
import { type Detail, detailOf, detailText } from "./detail.ts";
import { duration } from "./duration.ts";
import { loaded } from "./fixtures/trace.ts";
import { rowOf } from "./rows.ts";

const { rows } = loaded(80, 24);
const rowWith = (summary: string) => rows.find((row) => row.summary === summary);
const texts = (detail: Detail) => detail.lines.map((line) => line.text);

test("a raw event is shown as YAML or JSON with its time", () => {
  const row = rowWith("status=503");
  const yaml = detailOf(row, "raw", "yaml");
  assert.equal(yaml.title, "Raw event · at 2.385 ms, took 2.122 ms");
  assert.deepEqual(texts(yaml).slice(0, 3), ["eventStart: 263", "eventEnd: 2385", "severity: error"]);
  assert.deepEqual(JSON.parse(detailText(detailOf(row, "raw", "json"))), row?.event);
});

test("the reasons of all candidate routes can be read", () => {
  const route = rows.find((row) => row.label === "Route");
  assert.match(detailText(detailOf(route, "raw", "yaml")), /path: \/api\/cart does not begin with \/assets/);
});

test("a body snapshot shows what its base64 stands for", () => {
  const row = rowOf(
    { message: { type: "bodySnapshot", stage: "response", body: btoa("one\ntwo"), truncated: true } },
    undefined,
  );
  assert.deepEqual(texts(detailOf(row, "raw", "yaml")).slice(-3), ["── body, 7 bytes, cut short ──", "one", "two"]);
  const binary = rowOf(
    { message: { type: "bodySnapshot", body: Buffer.from([0, 255]).toString("base64") } },
    undefined,
  );
  assert.equal(texts(detailOf(binary, "raw", "yaml")).at(-1), "(binary)");
});

test("the snapshot mode shows the latest state at or before the row", () => {
  const detail = detailOf(rowWith("127.0.0.1:9000"), "snapshot", "yaml");
  assert.equal(detail.title, "Snapshot · final request");
  assert.ok(texts(detail).includes("  path: /cart"));
});

test("bodies inside a state are decoded, absent values left out", () => {
  const requestState = { request: { body: btoa('{"a":1}'), host: null }, response: { body: "not base64!" }, env: {} };
  const row = rowOf({ message: { type: "requestSnapshot", stage: "s", requestState } }, undefined);
  assert.deepEqual(JSON.parse(detailText(detailOf(row, "snapshot", "json"))), {
    request: { body: { a: 1 } },
    response: { body: "not base64!" },
    env: {},
  });
});

test("the diff mode shows what changed since the snapshot before", () => {
  const detail = detailOf(rowWith("route policies"), "diff", "yaml");
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
  assert.equal(
    detailOf(rowWith("gateway policies"), "diff", "yaml").title,
    "Snapshot diff · gateway policies · no change",
  );
  assert.equal(detailOf(rowWith("initial request"), "diff", "yaml").title, "Snapshot diff · initial request · first");
});

test("values cannot control the terminal", () => {
  const row = rowOf({ message: { type: "message", text: "a\u001b]0;owned\u0007\u009b2Jb" } }, undefined);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
  const control = /[\u0000-\u001f\u007f-\u009f]/;
  assert.doesNotMatch(row.summary, control);
  for (const mode of ["raw", "snapshot"] as const) {
    for (const line of texts(detailOf(row, mode, "yaml"))) assert.doesNotMatch(line, control);
  }
});

test("durations are readable", () => {
  assert.deepEqual([7, 2385, 1_250_000].map(duration), ["7 µs", "2.385 ms", "1.25 s"]);
});
