import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT } from "../cel/index.ts";
import { mostBytes, writeAccessLine } from "./access-line.ts";
import { AccessLogEdits } from "./access-log-edits.ts";

const RECORD = {
  time: 0,
  method: "GET",
  path: "/a b",
  protocol: "http",
  bytesReceived: 3,
  bytesSent: 4,
  durationMs: 3,
  error: "gone",
};
const VARIABLES = {
  request: {
    method: "GET",
    scheme: "http",
    authority: "a",
    path: "/a b",
    search: "",
    version: "HTTP/1.1",
    headers: ["x-user", "zoe smith"],
  },
  response: { status: 404, headers: [] },
};

test("without fields to change the line is the usual one", () => {
  const edits = new AccessLogEdits({ filter: "true" }, STANDARD_ENVIRONMENT);
  assert.equal(edits.changesFields, false);
  for (const format of ["text", "json"] as const) {
    const bytes = Buffer.alloc(mostBytes(RECORD));
    const usual = bytes.toString("utf8", 0, writeAccessLine(RECORD, format, bytes, 0));
    assert.equal(edits.format(RECORD, format, VARIABLES), usual);
  }
});

test("fields are added, replaced and removed; one that fails is left out", () => {
  const edits = new AccessLogEdits(
    {
      add: {
        user: 'request.headers["x-user"]',
        code: "response.code",
        duration: '"long"',
        none: "request.headers.none",
      },
      remove: ["http.method"],
    },
    STANDARD_ENVIRONMENT,
  );
  const kept = new AccessLogEdits({ remove: ["error"] }, STANDARD_ENVIRONMENT).format(RECORD, "text", VARIABLES);
  assert.match(kept, / protocol=http bytes\.received=3 bytes\.sent=4 duration=\d+ms\n$/);
  const text =
    '\tinfo\trequest http.path="/a b" protocol=http error="gone" bytes.received=3 bytes.sent=4 duration=long user="zoe smith" code=404\n';
  assert.equal(edits.format(RECORD, "text", VARIABLES).slice("1970-01-01T00:00:00.000Z".length), text);
  const json = JSON.parse(edits.format(RECORD, "json", VARIABLES)) as Record<string, unknown>;
  assert.deepEqual([json.user, json.code, json.duration, "http.method" in json], ["zoe smith", 404, "long", false]);
});

test("a flattened map becomes a field for each of its keys", () => {
  const edits = new AccessLogEdits({ add: { sent: "flatten(request.headers)" } }, STANDARD_ENVIRONMENT);
  assert.deepEqual(edits.edit({}, VARIABLES), { "sent.x-user": "zoe smith", "sent.host": "a" });
});

test("a filter decides; it is not met without a value that it reads, and logs the request if it fails", () => {
  const filters = {
    "response.code >= 400": true,
    "response.code >= 500": false,
    'request.headers.none == ""': false,
    'int(request.headers["x-user"]) == 3': true,
  };
  for (const [filter, wanted] of Object.entries(filters))
    assert.equal(new AccessLogEdits({ filter }, STANDARD_ENVIRONMENT).wants(VARIABLES), wanted, filter);
});

test("what clients send cannot drive a terminal from a line with changed fields", () => {
  const edits = new AccessLogEdits({ remove: ["http.method"] }, STANDARD_ENVIRONMENT);
  for (const format of ["text", "json"] as const) {
    const line = edits.format({ ...RECORD, path: "a\u009b2Jb\u2028\n" }, format, VARIABLES);
    assert.match(line, /a\\u009b2Jb\\u2028\\n/);
    assert.doesNotMatch(line.slice(0, -1).replaceAll("\t", ""), /[\p{Cc}\u2028]/u);
  }
});
