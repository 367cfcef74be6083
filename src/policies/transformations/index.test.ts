import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import type { HttpResponse } from "../../http/message/message.ts";
import type { Transformation } from "../schema/transformations.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace, type TestContext } from "../testing/context.ts";
import { transformations } from "./index.ts";

const create = creatorOf(transformations);

function transformed(request: Transformation, headers: string[] = [], more: Parameters<typeof contextOf>[1] = {}) {
  const context = contextOf({ headers }, more);
  assert.equal(create({ request }, DEPS).onRequest?.(context), undefined);
  return context;
}

function answered(response: Transformation, message: HttpResponse, context: TestContext = contextOf()): HttpResponse {
  create({ response }, DEPS).onResponse?.(context, message);
  return message;
}

const bodyOf = (context: TestContext): unknown => context.variables.request?.body?.toString();

test("headers: add, set and remove, with values of the request", () => {
  const context = transformed(
    {
      add: { "X-Many": "'two'" },
      set: { "x-path": "request.path", "x-number": "1 + 2", "x-flag": "true", "x-utf8": "'Zoë'" },
      remove: ["X-Old"],
    },
    ["x-many", "one", "x-old", "1", "x-path", "/", "x-path", "//"],
  );
  assert.deepEqual(context.request.headers, [
    ...["x-many", "one", "x-path", "/shop/cart", "x-many", "two", "x-number", "3", "x-flag", "true"],
    ...["x-utf8", "ZoÃ«"],
  ]);
});

test("each step sees the changes of those before it: metadata, replace, add, set, remove, body", () => {
  const context = transformed(
    {
      body: "request.headers['x-b']",
      remove: ["x-a"],
      set: { "x-b": "request.headers['x-a'] + metadata.m" },
      add: { "x-a": "'a'" },
      replace: "{'x-r': 'r'}",
      metadata: { m: "request.headers['x-r']" },
    },
    ["x-r", "before", "x-gone", "1"],
  );
  assert.deepEqual(context.request.headers, ["x-r", "r", "x-b", "abefore"]);
  assert.equal(bodyOf(context), "abefore");
  assert.deepEqual(context.requestMetadata.metadata, { m: "before" });
});

test("a header whose expression fails, or returns nothing or an invalid value, is removed", () => {
  for (const text of ["request.headers.none", "null", "'a\\r\\nb: c'", "[1]", "{'a': 1}"]) {
    assert.deepEqual(transformed({ set: { "x-a": text } }, ["x-a", "1"]).request.headers, [], text);
    assert.deepEqual(transformed({ add: { "x-a": text } }, ["x-a", "1"]).request.headers, [], text);
  }
});

test("pseudo headers change the request line; an invalid value changes nothing", () => {
  const context = transformed({
    set: { ":method": "'PUT'", ":path": "'/new?x=1'", ":authority": "'b:81'", ":scheme": "'https'" },
  });
  const { method, path, search, authority, scheme } = context.request;
  assert.deepEqual([method, path, search, authority, scheme], ["PUT", "/new", "?x=1", "b:81", "https"]);
  assert.equal(context.authorityMode, "fixed");
  assert.equal(transformed({ set: { Host: "'c'" } }).request.authority, "c");

  for (const [name, text] of [
    [":method", "'A B'"],
    [":method", "'HEAD'"],
    [":path", "'no-slash'"],
    [":path", "'/a b'"],
    [":path", "'/../x'"],
    [":authority", "'a b'"],
    [":scheme", "'ftp'"],
  ] as const)
    assert.deepEqual(transformed({ set: { [name]: text } }).request, contextOf().request, `${name} ${text}`);
});

test("replace takes a map for all headers but those that frame the message", () => {
  const before = ["content-length", "3", "x-a", "1"];
  const { request } = transformed({ replace: "{'X-B': ['1', '2'], ':path': '/p', 'content-length': '9'}" }, before);
  assert.deepEqual(request.headers, ["content-length", "3", "x-b", "1", "x-b", "2"]);
  assert.equal(request.path, "/p");
  for (const text of ["'x'", "{'a b': '1'}", "{'x': 'a\\nb'}", "request.headers.none"])
    assert.deepEqual(transformed({ replace: text }, before).request.headers, before, text);
});

test("body: text and bytes as they are, lists and maps as JSON, empty when it fails", () => {
  for (const [text, expected] of [
    ["'Zoë'", "Zoë"],
    ["b'raw'", "raw"],
    ["{'a': [1, true]}", '{"a":[1,true]}'],
    ["[1, 'x']", '[1,"x"]'],
    ["request.headers.none", ""],
  ] as const)
    assert.equal(bodyOf(transformed({ body: text }, [], { body: "before" })), expected, text);
});

test("an expression that reads the body waits for it", async () => {
  const context = contextOf({}, { body: '{"user":"zoe"}' });
  const outcome = create({ request: { set: { "x-user": "json(request.body).user" } } }, DEPS).onRequest?.(context);
  assert.ok(outcome instanceof Promise);
  assert.equal(await outcome, undefined);
  assert.deepEqual(context.request.headers, ["x-user", "zoe"]);
});

test("responses: status and headers; statuses without a body are unchanged", () => {
  const message = answered({ set: { ":status": "201", "x-a": "request.method" } }, { status: 200, headers: [] });
  assert.deepEqual(message, { status: 201, headers: ["x-a", "GET"] });
  for (const [status, text] of [
    [200, "204"],
    [200, "100"],
    [200, "600"],
    [200, "'x'"],
    [304, "200"],
  ] as const)
    assert.equal(answered({ set: { ":status": text } }, { status, headers: [] }).status, status, text);
});

test("a response sees the metadata of the request, and its body if the policy waited for it", async () => {
  const config = {
    request: { metadata: { start: "request.path" } },
    response: { set: { "x-start": "metadata.start" } },
  };
  const policy = create(config, DEPS);
  const context = contextOf();
  policy.onRequest?.(context);
  const message: HttpResponse = { status: 200, headers: [] };
  policy.onResponse?.(context, message);
  assert.deepEqual(message.headers, ["x-start", "/shop/cart"]);
  const reading = create({ response: { set: { "x-b": "string(request.body)" } } }, DEPS);
  assert.ok(reading.onRequest?.(context) instanceof Promise);
});

test("protected fields and invalid settings are rejected at load", () => {
  assert.throws(
    () => create({ request: { set: { connection: "'x'" } } }, DEPS),
    /transformations.request.set: connection frames/,
  );
  assert.throws(() => create({ request: { remove: [":path"] } }, DEPS), /transformations.request.remove: :path/);
  assert.throws(() => create({ response: { set: { ":path": "'x'" } } }, DEPS), /transformations.response.set: :path/);
  assert.throws(() => create({ request: { set: { "x-a": "response.code" } } }, DEPS), /response/);
  assert.throws(() => create({ request: { body: "1 +" } }, DEPS), Error);
});

test("headers that hold secrets are not shown in `replace` either", () => {
  const redacted = (replace: string): unknown => transformations.traceView({ request: { replace } }, DEPS.hidden);
  for (const text of ["{'authorization': 'Bearer s3cret'}", 'request.headers.merge({"X-Api-Key" : "s3cret"})'])
    assert.deepEqual(redacted(text), { request: { replace: "<redacted>" } }, text);
  const harmless = "request.headers.filterKeys(k, k != 'authorization')";
  assert.deepEqual(redacted(harmless), { request: { replace: harmless } });
});

test("shows its configuration without secrets, and reports what failed", () => {
  const request = { set: { authorization: "'Bearer s3cret'", "x-a": "request.headers.none" } };
  const policy = create({ request }, DEPS);
  const redacted = { request: { set: { authorization: "<redacted>", "x-a": "request.headers.none" } } };
  assert.deepEqual(transformations.traceView({ request }, DEPS.hidden), redacted);
  const trace = new RecordedTrace();
  policy.onRequest?.(contextOf({}, { trace }));
  const [event] = trace.events as { kind: string; details: { side: string; failed: string[] } }[];
  assert.equal(event?.kind, "transformation");
  assert.equal(event?.details.side, "request");
  assert.match(event?.details.failed[0] ?? "", /^set.x-a: /);
});

test("no value of an expression can put more than one field into a head", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 20 }), (value) => {
      const text = JSON.stringify(value).replaceAll("\\/", "/");
      const { headers } = transformed({ set: { "x-a": text } }).request;
      assert.ok(headers.length === 0 || (headers.length === 2 && !/[\r\n\0]/.test(headers[1] ?? "")));
    }),
  );
});
