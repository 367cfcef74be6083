import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { sensitiveHeaders } from "../../trace/redaction.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace, type TestContext } from "../testing/context.ts";
import { apiKey } from "./index.ts";
import { schema } from "./schema.ts";

const create = creatorOf(apiKey);

const KEYS = [
  { key: "k-alice", metadata: { user: "alice", admin: true } },
  { keyHash: `sha256:${createHash("sha256").update("k-bøb").digest("hex").toUpperCase()}` },
];

/** Runs the policy over a request; returns the error that it rejected it with. */
function outcome(config: object, context: TestContext): string | undefined {
  try {
    create(schema.parse({ keys: KEYS, ...config }), DEPS).onRequest?.(context);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return `${error.status} ${error.message}`;
  }
}

const bearer = (key: string): TestContext => contextOf({ headers: ["authorization", `bearer ${key}`, "x", "y"] });
const NO_KEY = "401 api key authentication failure: no API Key found";
const WRONG = "401 api key authentication failure: invalid credentials";

/** A value as logs and traces show it. */
const shownOf = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test("a valid key passes and is removed; its metadata is kept", () => {
  const context = bearer("k-alice");
  assert.equal(outcome({ mode: "strict" }, context), undefined);
  assert.deepEqual(context.request.headers, ["x", "y"]);
  assert.deepEqual(shownOf(context.requestMetadata.apiKey), { user: "alice", admin: true, key: "<redacted>" });
});

test("a key given as a hash is compared by its bytes", () => {
  const context = bearer(Buffer.from("k-bøb").toString("latin1"));
  assert.equal(outcome({ mode: "strict" }, context), undefined);
  assert.deepEqual(shownOf(context.requestMetadata.apiKey), { key: "<redacted>" });
});

test("modes: requests without a key and with a wrong one", () => {
  for (const [mode, none, wrong] of [
    ["strict", NO_KEY, WRONG],
    ["optional", undefined, WRONG],
    ["permissive", undefined, undefined],
  ]) {
    const [without, withWrong] = [contextOf(), bearer("k-eve")];
    assert.equal(outcome({ mode }, without), none, mode);
    assert.equal(outcome({ mode }, withWrong), wrong, mode);
    assert.equal(withWrong.requestMetadata.apiKey, undefined);
    assert.equal(withWrong.request.headers.length, 4);
  }
  assert.equal(outcome({}, contextOf()), undefined, "optional is the default");
  assert.equal(outcome({ mode: "strict" }, contextOf({ headers: ["authorization", "Basic k-alice"] })), NO_KEY);
});

test("metadata with the name of a secret is not shown", () => {
  const metadata = { team: "a", clientSecret: "s3cret", nested: [{ "x-token": "s3cret" }], own: "s3cret" };
  const config = schema.parse({ keys: [{ key: "k", metadata }] });
  const redacted = apiKey.traceView(config, sensitiveHeaders(["own"]));
  assert.ok(!JSON.stringify(redacted).includes("s3cret"));
  assert.match(JSON.stringify(redacted), /"team":"a"/);
});

test("neither dumps nor traces contain the key", () => {
  const trace = new RecordedTrace();
  const policy = create(schema.parse({ keys: KEYS }), DEPS);
  policy.onRequest?.(contextOf({ headers: ["authorization", "Bearer k-alice"] }, { trace }));
  assert.deepEqual(trace.events, [{ kind: "api_key", details: { valid: true } }]);
  const text = JSON.stringify([apiKey.traceView(schema.parse({ keys: KEYS }), DEPS.hidden), trace.events]);
  for (const { hash } of schema.parse({ keys: KEYS }).keys) assert.ok(!text.includes(hash));
  assert.ok(!text.includes("k-alice"));
});

test("the same key twice is rejected, in any form", () => {
  const hash = createHash("sha256").update("k-alice").digest("hex");
  assert.throws(
    () => create(schema.parse({ keys: [...KEYS, { keyHash: `sha256:${hash}` }] }), DEPS),
    /^Error: apiKey.keys.2: /,
  );
});

test("a trace says that there was no key", () => {
  const trace = new RecordedTrace();
  assert.equal(outcome({ mode: "strict" }, contextOf({}, { trace })), NO_KEY);
  assert.deepEqual(trace.events, [
    { kind: "api_key", details: { valid: false, reason: "no API key found" }, severity: "error" },
  ]);
});
