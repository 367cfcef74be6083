import assert from "node:assert/strict";
import { test } from "node:test";
import { type Activation, Inputs, STANDARD_ENVIRONMENT } from "./index.ts";

const ACTIVATION = {
  request: {
    method: "GET",
    scheme: "http",
    authority: "a.test",
    path: "/x",
    search: "?a=1",
    version: "HTTP/1.1",
    headers: ["x-a", "1", "in", "2"],
  },
  jwt: { sub: "alice", groups: ["a", "b"], nested: { "strange key": true } },
  env: {},
} as unknown as Activation;

const inputs = (text: string): Record<string, unknown> =>
  Object.fromEntries(
    new Inputs(text, "request", STANDARD_ENVIRONMENT).of(ACTIVATION).map(({ text: path, value }) => [path, value]),
  );

test("the longest paths that an expression reads, each once, with their values", () => {
  assert.deepEqual(inputs('jwt.sub == "bob" || jwt.sub == "eve" || request.path.startsWith("/admin")'), {
    "jwt.sub": "alice",
    "request.path": "/x",
  });
  assert.deepEqual(inputs('"c" in jwt.groups && request.headers["x-a"] == "2"'), {
    "jwt.groups": ["a", "b"],
    'request.headers["x-a"]': "1",
  });
  assert.deepEqual(inputs('jwt.nested["strange key"] && request.headers["in"] == "2"'), {
    'jwt.nested["strange key"]': true,
    'request.headers["in"]': "2",
  });
});

test("absent values are null; loops, whole header maps and constants are not inputs", () => {
  assert.deepEqual(inputs('has(jwt.role) && request.headers["x-b"] == "1"'), {
    "jwt.role": null,
    'request.headers["x-b"]': null,
  });
  assert.deepEqual(inputs("jwt.groups.exists(sub, sub == request.method)"), {
    "jwt.groups": ["a", "b"],
    "request.method": "GET",
  });
  assert.deepEqual(inputs('"x-a" in request.headers && 1 < 2'), {});
});

test("of very many paths the first are shown", () => {
  const many = Array.from({ length: 50 }, (_, index) => `jwt.f${index} == 1`).join(" || ");
  assert.equal(Object.keys(inputs(many)).length, 20);
});
