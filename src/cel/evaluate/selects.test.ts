import assert from "node:assert/strict";
import { test } from "node:test";
import type { Activation } from "../index.ts";
import { assertFailures, assertTrue, evaluate, failureOf } from "../testing/evaluate.ts";

const ACTIVATION: Activation = {
  request: {
    method: "GET",
    scheme: "https",
    authority: "shop.example",
    path: "/cart",
    search: "",
    version: "HTTP/1.1",
    headers: ["x-one", "a", "x-two", "b", "x-two", "c", "x-empty", "", "cookie", "id=1"],
  },
  response: { status: 404, headers: ["content-type", "text/plain"] },
  source: { address: "10.1.2.3", port: 4711, rawAddress: "10.1.2.3", rawPort: 4711 },
  jwt: { sub: "alice", realm: { role: "dev" }, none: null },
};

test("has() distinguishes absent headers from present ones", () => {
  assertTrue(
    [
      "has(request.headers.cookie) && !has(request.headers.absent)",
      'has(request.headers.host) && "x-one" in request.headers',
      'request.headers[?"x-one"].hasValue() && !request.headers[?"absent"].hasValue()',
      "request.headers.?cookie.hasValue() && !response.headers.?cookie.hasValue()",
    ],
    ACTIVATION,
  );
});

test("headers are found whatever the case of the name", () => {
  assertTrue(
    [
      'request.headers["X-One"] == "a"',
      'request.headers["x-empty"] == ""',
      'response.headers["Content-Type"] == "text/plain"',
    ],
    ACTIVATION,
  );
  const { what, absent } = failureOf('response.headers["content-type"] == "a"', { request: ACTIVATION.request });
  assert.deepEqual({ what, absent }, { what: "no such key: content-type", absent: true });
  assert.equal(evaluate("has(response.headers.etag)", {}), false);
});

test("a header compared with a text, on either side", () => {
  assertTrue(
    [
      'request.headers["x-one"] == "a" && "a" == request.headers["x-one"] && request.headers["x-one"] != "b"',
      'request.headers["x-one"] == "a" && !(request.headers["x-one"] != "a")',
      'request.headers["x-two"] == ["b", "c"]',
    ],
    ACTIVATION,
  );
  const repeated = /^the field x-two is repeated; compare lists, or use join\(\)$/;
  assertFailures(
    {
      'request.headers["x-two"] == "b"': repeated,
      'request.headers["x-two"] != "é"': repeated,
      '"b" == request.headers["x-two"]': repeated,
      'request.headers.absent != "b"': /^no such key: absent$/,
    },
    ACTIVATION,
  );
});

test("fields of claims: present, absent, of null and of texts", () => {
  assertTrue(
    [
      'jwt.sub == "alice" && jwt.realm.role == "dev" && jwt.none == null',
      "has(jwt.realm.role) && !has(jwt.realm.other) && !has(jwt.other.role) && !has(jwt.none.role)",
      'jwt.?realm.?role.value() == "dev" && !jwt.?other.?role.hasValue() && !jwt.?none.?role.hasValue()',
      'jwt.?realm.role.value() == "dev" && has(jwt.?realm.role) && !has(jwt.?realm.other)',
    ],
    ACTIVATION,
  );
  const absent = (text: string): boolean => failureOf(text, ACTIVATION).absent;
  assert.deepEqual(["jwt.other", "jwt.none.role", "jwt.other.role"].map(absent), [true, true, true]);
  assert.equal(absent("jwt.sub.length"), false);
  assertFailures(
    { "jwt.sub.length": /^a value of type string has no field length$/, "has(jwt.sub.length)": /has no field length/ },
    ACTIVATION,
  );
});

test("without a message its fields are absent", () => {
  assert.equal(evaluate("has(response.code)", {}), false);
  assert.equal(evaluate("response.?code.hasValue()", {}), false);
  for (const text of ["response.code", "response.code == 200", "response.code < 500", "source.port > 1"]) {
    const failure = failureOf(text);
    assert.equal(failure.absent, true, text);
    assert.match(failure.what, /^no such key: (code|port)$/);
  }
});

test("the status and ports compare with constants as any integer does", () => {
  assertTrue(
    [
      "response.code == 404 && response.code != 200 && response.code < 405 && response.code <= 404",
      "response.code > 403 && response.code >= 404 && source.port == 4711",
      "!(response.code == 200) && !(response.code != 404) && !(response.code < 404) && !(response.code <= 403)",
      "!(response.code > 404) && !(response.code >= 405)",
      "404 == response.code && response.code < 9223372036854775807 && response.code == 404.0",
    ],
    ACTIVATION,
  );
});

test("without a client certificate source.identity is null, and has no fields", () => {
  const source = { address: "::1", port: 4711, rawAddress: "::1", rawPort: 4711 };
  assertTrue(
    [
      "source.identity == null",
      "!(source.identity != null)",
      "!has(source.identity)",
      "!has(source.identity.namespace)",
    ],
    { source },
  );
  assert.equal(failureOf('source.identity.namespace == "a"', { source }).absent, true);
  const known = { source: { ...source, identity: { namespace: "a" } } };
  assertTrue(['source.identity != null && source.identity.namespace == "a" && has(source.identity)'], known);
});

test("failures point to the field", () => {
  assert.equal(failureOf("1 == 1 && jwt.realm.other == 1", ACTIVATION).position?.column, 21);
  assert.equal(failureOf('1 == 1 && request.headers.absent == "1"', ACTIVATION).position?.column, 27);
});
