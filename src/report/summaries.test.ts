import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fields } from "../base/fields.ts";
import { EVENTS } from "./fixtures/trace.ts";
import { rowOf } from "./rows.ts";

test("every event of a trace has its label and summary", () => {
  const rows = EVENTS.map((event) => rowOf(event, undefined)).map(({ label, summary }) => `${label}: ${summary}`);
  assert.deepEqual(rows, [
    "Request Start: request started",
    "Snapshot: initial request",
    "Policies: gateway effective policies: cors",
    "Policy: cors skipped: no Origin header",
    "Snapshot: gateway policies",
    'Route: selected "cart" (3 evaluated)',
    "Policies: route effective policies: authorization, requestHeaderModifier, urlRewrite",
    "Authz: allowed: allow rules[0] is true: signed-in",
    "Policy: url_rewrite: /api/cart?debug=1 to /cart?debug=1",
    "Snapshot: route policies",
    "Policies: backend effective policies: none",
    "Snapshot: final request",
    "Backend Start: 127.0.0.1:9000",
    "Body Snapshot: final request",
    "Backend Result: status=503",
    "Snapshot: raw response",
    "Snapshot: backend response ready",
    "Snapshot: final response",
    "Dropped: 2 events lost: the reader was too slow",
    "Body Snapshot: response",
    "Request Done: request finished status=503",
  ]);
});

const summary = (message: Fields, more: Fields = {}) => rowOf({ message, ...more }, undefined).summary;

test("a build without phases, and one whose requestFinished carries nothing", () => {
  assert.equal(summary({ type: "policySelection", effectivePolicy: { cors: {} } }), "effective policies: cors");
  assert.equal(summary({ type: "requestFinished" }), "request finished");
  const grpc = { status: 14, requestMessages: 1, responseMessages: 0 };
  const failed = { type: "requestFinished", status: 200, error: null, grpc };
  assert.equal(summary(failed), "request finished status=200 grpc=14");
  assert.equal(
    summary({ type: "policySelection", phase: "backend", effectivePolicy: { requestMirror: [] } }),
    "backend effective policies: none",
  );
});

test("the summary of a request without a route says so", () => {
  const message = { type: "routeSelection", selectedRoute: null, evaluatedRoutes: ["a", "b"] };
  assert.equal(summary(message), "no route selected (2 evaluated)");
  assert.equal(summary({ type: "routeSelection" }), "no route selected");
  const listeners = [{ listener: "a", reason: "host: x does not match y" }];
  assert.equal(summary({ ...message, listeners }), "no listener accepts this host (1 evaluated)");
});

test("a message has its beginning, if it is readable text", () => {
  const message = (more: Fields) => summary({ type: "streamMessage", direction: "sent", number: 3, bytes: 5, ...more });
  const base64 = (content: string | Buffer) => Buffer.from(content).toString("base64");
  assert.equal(message({ opcode: "text", body: base64("one\ntwo") }), "sent 3: text, 5 B: one two");
  assert.equal(message({ opcode: "close", closeCode: 1000, body: "" }), "sent 3: close 1000, 5 B");
  assert.equal(message({ body: base64(Buffer.from([10, 0, 255])) }), "sent 3: 5 B");
  assert.equal(message({ compressed: true, body: base64("x") }), "sent 3: 5 B, compressed");
  const long = message({ body: base64("é".repeat(5000)) });
  assert.ok(long.startsWith("sent 3: 5 B: éé") && long.length === 120);
});

test("failures name their error", () => {
  const message = { type: "backendCallResult", status: null, error: "connection refused" };
  assert.equal(summary(message), "error=connection refused");
  assert.equal(summary({ type: "cel", expr: "a.b", result: { error: "no such key" } }), "a.b => error: no such key");
});

test("an authorization names the rule that decided", () => {
  const result = (outcome: string, ...rules: object[]) =>
    summary({ type: "authorizationResult", result: outcome, rules });
  const [deny, require, allow] = ["deny", "require", "allow"].map((mode) => ({ mode, name: `a.${mode}` }));
  assert.equal(
    result("deny", { ...deny, matched: true }, { ...require, matched: false }),
    "denied: deny rules[0] is true: a.deny",
  );
  assert.equal(
    result("deny", { ...deny, matched: false }, { ...require, matched: false }),
    "denied: require rules[1] is not true: a.require",
  );
  const failed = { matched: false, error: "no such key" };
  assert.equal(
    result("deny", { ...deny, ...failed }, { ...allow, matched: true }),
    "denied: deny rules[0] cannot be evaluated: a.deny, no such key",
  );
  assert.equal(
    result("deny", { ...require, ...failed }),
    "denied: require rules[0] cannot be evaluated: a.require, no such key",
  );
  assert.equal(result("deny", { ...allow, matched: false }), "denied: no allow rule is true");
  assert.equal(
    result("deny", { ...allow, ...failed }),
    "denied: allow rules[0] cannot be evaluated: a.allow, no such key",
  );
  assert.equal(result("allow", { ...allow, matched: true }), "allowed: allow rules[0] is true: a.allow");
  assert.equal(result("allow", { ...deny, matched: false }), "allowed: no rule denies");
});

test("callouts show their scope, long summaries are cut", () => {
  const started = { type: "backendCallStart", target: "auth:9000" };
  assert.equal(summary(started, { scope: ["ext_authz", "http"] }), "ext_authz > http: auth:9000");
  const long = summary({ type: "message", text: "x".repeat(200) });
  assert.equal(long, `${"x".repeat(117)}...`);
});

test("an event of an unknown type, without fields, or without a message is shown as it is", () => {
  assert.equal(rowOf({ message: { type: "quantum", spin: 1 } }, undefined).label, "quantum");
  assert.equal(summary({ type: "quantum", spin: 1 }), '{"spin":1}');
  for (const type of [
    "requestSnapshot",
    "policySelection",
    "policy",
    "authorizationResult",
    "bodySnapshot",
    "dropped",
    "",
  ]) {
    assert.equal(typeof summary({ type }), "string");
  }
  assert.equal(rowOf({}, undefined).label, "Message");
  assert.equal(rowOf({ message: 7, severity: "odd" }, undefined).severity, "info");
});
