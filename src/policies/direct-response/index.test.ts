import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1 } from "../../http/message/syntax.ts";
import { redactPolicy } from "../registry.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace, replyOf } from "../testing/context.ts";
import { directResponse } from "./index.ts";

const create = creatorOf(directResponse);

test("responds with status and body and adds no content-type", () => {
  const policy = create({ status: 418, body: "tea" });
  assert.deepEqual(replyOf(policy, contextOf()), { status: 418, headers: [], body: "tea" });
  assert.deepEqual(replyOf(create({ status: 204 }), contextOf()), { status: 204, headers: [], body: "" });
});

test("headers that are added to one response are not in the next", () => {
  const policy = create({ status: 200 });
  replyOf(policy, contextOf()).headers.push("x-a", latin1("1"));
  assert.deepEqual(replyOf(policy, contextOf()).headers, []);
});

test("a status that is not final, or a body where none is allowed, is rejected at load", () => {
  for (const status of [101, 199, 600, 200.5, Number.NaN])
    assert.throws(() => create({ status }), /directResponse.status: \S+ is not a status from 200 to 599/);
  for (const status of [204, 205, 304])
    assert.throws(() => create({ status, body: "x" }), /directResponse.body: a response with status \d+ has no body/);
});

test("bytes, and a body and headers from expressions", () => {
  assert.deepEqual(replyOf(create({ status: 200, body: [0, 255] }), contextOf()).body, new Uint8Array([0, 255]));
  const headers = {
    "Content-Type": "'application/json'",
    "x-none": "request.headers.none",
    "x-bad": "'a\\nb'",
    "x-é": "''",
  };
  assert.throws(() => create({ status: 200, headers }), /directResponse.headers: "x-é" is not a header name/);
  const { "x-é": _, ...good } = headers;
  const reply = replyOf(create({ status: 200, bodyExpression: "{'path': request.path}", headers: good }), contextOf());
  assert.equal(reply.body.toString(), '{"path":"/shop/cart"}');
  assert.deepEqual(reply.headers, ["content-type", "application/json"]);
});

test("a body whose expression fails is an error of the gateway; one over the request's body waits for it", async () => {
  const failing = create({ status: 200, bodyExpression: "request.headers.none" });
  assert.throws(() => failing.onRequest?.(contextOf()), /failed to apply filters: the body of the direct response/);
  const echo = create({ status: 200, bodyExpression: "request.body" });
  const reply = await echo.onRequest?.(contextOf({}, { body: "hello" }));
  assert.equal(reply?.body.toString(), "hello");
});

test("two bodies are rejected at load", () => {
  assert.throws(
    () => create({ status: 200, body: "", bodyExpression: "'x'" }),
    /directResponse.bodyExpression: the response has a body already/,
  );
  assert.throws(() => create({ status: 204, bodyExpression: "'x'" }), /bodyExpression: a response with status 204/);
});

test("reports its status and the bytes of its body", () => {
  const trace = new RecordedTrace();
  create({ status: 200, body: "Zoë" }).onRequest?.(contextOf({}, { trace }));
  assert.deepEqual(trace.events, [{ kind: "direct_response", details: { status: 200, bytes: 4 } }]);
});

test("shows its configuration without the expressions of headers that hold secrets", () => {
  const config = { status: 200, headers: { "Set-Cookie": "'id=s3cret'", "x-a": "'1'" } };
  const redacted = { status: 200, headers: { "Set-Cookie": "<redacted>", "x-a": "'1'" } };
  assert.deepEqual(directResponse.traceView(config, DEPS.hidden), redacted);
  assert.deepEqual(redactPolicy("directResponse", { conditional: [config] }, DEPS.hidden), { conditional: [redacted] });
});
