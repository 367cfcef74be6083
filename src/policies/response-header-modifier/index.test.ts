import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf, creatorOf, DEPS, RecordedTrace } from "../testing/context.ts";
import { responseHeaderModifier } from "./index.ts";

const create = creatorOf(responseHeaderModifier);

test("changes response headers in the order add, set, remove", () => {
  const response = { status: 200, headers: ["server", "x", "set-cookie", "a=1"] };
  const config = { add: { "Set-Cookie": "b=2" }, set: { "cache-control": "no-store" }, remove: ["Server"] };
  create(config, DEPS).onResponse?.(contextOf(), response);
  assert.deepEqual(response.headers, ["set-cookie", "a=1", "set-cookie", "b=2", "cache-control", "no-store"]);
});

test("has nothing to do with the request", () => {
  assert.equal(create({ remove: ["server"] }, DEPS).onRequest, undefined);
});

test("headers that frame the response are rejected at load", () => {
  assert.throws(
    () => create({ remove: ["Content-Length"] }, DEPS),
    /responseHeaderModifier.remove.0: Content-Length frames the message/,
  );
});

test("reports the touched headers with secrets redacted", () => {
  const trace = new RecordedTrace();
  const response = { status: 200, headers: ["set-cookie", "id=secret", "etag", "1"] };
  create({ remove: ["set-cookie"], set: { "x-a": "1" } }, DEPS).onResponse?.(contextOf({}, { trace }), response);
  assert.deepEqual(trace.events, [
    {
      kind: "response_header_modifier",
      details: { set: { "x-a": "1" }, remove: ["set-cookie"] },
      before: { "set-cookie": "<redacted>" },
      after: { "x-a": "1" },
    },
  ]);
});
