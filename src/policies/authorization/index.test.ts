import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { contextOf, creatorOf, RecordedTrace } from "../testing/context.ts";
import { authorization } from "./index.ts";
import type { AuthorizationRule } from "./schema.ts";

const create = creatorOf(authorization);

const [YES, NO] = ['request.path == "/shop/cart"', 'request.method == "PUT"'];
const [ABSENT, FAILS] = ['request.headers.none == "x"', 'json(request.path).user == "x"'];

function decide(...rules: readonly (readonly [AuthorizationRule["mode"], string])[]): "allowed" | "denied" {
  const policy = create({ rules: rules.map(([mode, expression]) => ({ mode, expression })) });
  try {
    policy.onRequest?.(contextOf());
    return "allowed";
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    assert.deepEqual([error.code, error.status, error.message], ["TG_AUTHORIZATION", 403, "authorization failed"]);
    return "denied";
  }
}

test("no rules allow", () => assert.equal(decide(), "allowed"));

test("a deny rule that is true denies, whatever other rules say; one that reads an absent value does not", () => {
  assert.equal(decide(["deny", YES], ["allow", YES]), "denied");
  assert.equal(decide(["deny", NO]), "allowed");
  assert.equal(decide(["deny", ABSENT]), "allowed");
});

test("a require rule has to be true", () => {
  assert.equal(decide(["require", YES]), "allowed");
  assert.equal(decide(["require", NO], ["allow", YES]), "denied");
  assert.equal(decide(["require", ABSENT]), "denied");
});

test("a rule that cannot be evaluated grants nothing", () => {
  assert.equal(decide(["deny", FAILS]), "denied");
  assert.equal(decide(["deny", FAILS], ["allow", YES]), "denied");
  assert.equal(decide(["require", FAILS]), "denied");
  assert.equal(decide(["allow", FAILS]), "denied");
  assert.equal(decide(["allow", FAILS], ["allow", YES]), "allowed");
});

test("if there are allow rules, one has to be true", () => {
  assert.equal(decide(["allow", NO], ["allow", YES]), "allowed");
  assert.equal(decide(["allow", NO], ["allow", ABSENT]), "denied");
});

const METHOD = { text: "request.method", path: ["method"], value: "GET" };
const PATH = { text: "request.path", path: ["path"], value: "/shop/cart" };

test("a trace shows every rule with its outcome", () => {
  const trace = new RecordedTrace();
  const rules = [
    { mode: "deny", expression: NO },
    { mode: "allow", expression: YES },
  ] as const;
  create({ rules }).onRequest?.(contextOf({}, { trace }));
  const redacted = [
    { name: NO, matched: false, mode: "deny", inputs: [METHOD] },
    { name: YES, matched: true, mode: "allow", inputs: [PATH] },
  ];
  assert.deepEqual(trace.events, [{ kind: "authorizationResult", rules: redacted, result: "allow" }]);
});

test("a trace shows why a rule could not be evaluated", () => {
  const trace = new RecordedTrace();
  const { onRequest } = create({ rules: [{ mode: "deny", expression: FAILS }] });
  assert.throws(() => onRequest?.(contextOf({}, { trace })), { code: "TG_AUTHORIZATION" });
  const error = "the text is not JSON";
  const redacted = [{ name: FAILS, matched: false, mode: "deny", error, inputs: [PATH] }];
  assert.deepEqual(trace.events, [{ kind: "authorizationResult", rules: redacted, result: "deny" }]);
});

test("rules over the body wait for it; a body that is too long to buffer gets 413", async () => {
  const rules = [{ mode: "deny", expression: 'string(request.body).contains("drop")' }] as const;
  const { onRequest } = create({ rules });
  await onRequest?.(contextOf({}, { body: "select" }));
  await assert.rejects(async () => onRequest?.(contextOf({}, { body: "drop it" })), { code: "TG_AUTHORIZATION" });
  const long = { ...contextOf({}, { body: "drop it" }), maxBufferSize: 3 };
  await assert.rejects(async () => onRequest?.(long), { code: "TG_BODY_TOO_LARGE" });
});
