import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { Decisions } from "../contract/decisions.ts";
import { contextOf, RecordedTrace } from "../testing/context.ts";
import {
  afterRequestBody,
  type BodyUnknown,
  bodyIfShort,
  bodyUnknown,
  compileAll,
  evaluateAll,
  sendableText,
} from "./expressions.ts";

const compile = (text: string) => STANDARD_ENVIRONMENT.compileExpression(text, "request");
const tooLong = () => contextOf({}, { body: "x".repeat(3_000_000) });

test("without an expression that reads the body, nothing waits", () => {
  assert.equal(afterRequestBody([compile("request.path")], () => undefined)(contextOf()), undefined);
});

test("a body over the limit ends the request, except for policies that work without it", async () => {
  const body = [compile("request.body")];
  const done = (): undefined => undefined;
  await assert.rejects(
    async () => afterRequestBody(body, done)(tooLong()),
    (error) => error instanceof GatewayError && error.code === "TG_BODY_TOO_LARGE",
  );
  const trace = new RecordedTrace();
  const optional = afterRequestBody(body, done, (context) =>
    bodyIfShort(context, new Decisions<BodyUnknown>("delay", { bodyUnknown })),
  );
  assert.equal(await optional({ ...tooLong(), trace }), undefined);
  const reason = "the body is unknown: it is longer than 2097152 bytes (maxBufferSize)";
  assert.deepEqual(trace.events, [{ kind: "delay", reason, severity: "warn" }]);
});

test("a value that cannot be evaluated is omitted, the others are not", () => {
  const values = compileAll(
    { path: "request.path", lost: 'request.headers["x-lost"]' },
    "request",
    STANDARD_ENVIRONMENT,
  );
  assert.deepEqual(evaluateAll(values, { request: contextOf().request }), { path: "/shop/cart" });
});

test("text becomes bytes of UTF-8; a line break cannot start another field", () => {
  assert.equal(sendableText("é"), "\u00c3\u00a9");
  assert.throws(() => sendableText("a\r\nx-admin: true"), /control character/);
});
