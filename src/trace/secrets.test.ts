import assert from "node:assert/strict";
import { test } from "node:test";
import { SensitiveNames, SensitiveParameters } from "../base/sensitive-names.ts";
import { STANDARD_ENVIRONMENT } from "../cel/index.ts";
import { RequestSecrets } from "./secrets.ts";

const of = (reveal = false): RequestSecrets =>
  new RequestSecrets(reveal, new SensitiveNames(["x-tenant"]), new SensitiveParameters(["ticket"]));

test("a redacted value is redacted wherever it reappears, whole or in part", () => {
  const secrets = of();
  secrets.remember(["authorization", "Bearer abcdefgh", "cookie", "sid=12345678; lang=en", "accept", "everything"]);
  assert.deepEqual(secrets.headers(["x-copy", "was abcdefgh", "x-id", "12345678", "x-accept", "everything"]), {
    "x-copy": "was <redacted>",
    "x-id": "<redacted>",
    "x-accept": "everything",
  });
  assert.equal(secrets.input(["user"], "Bearer abcdefgh"), "<redacted>");
});

test("a secret in UTF-8 is redacted as bytes and as text", () => {
  const secrets = of();
  const bytes = Buffer.from("schlüssel-1").toString("latin1");
  assert.deepEqual(secrets.headers(["authorization", bytes, "x-copy", bytes]), {
    authorization: "<redacted>",
    "x-copy": "<redacted>",
  });
  assert.equal(secrets.details('header x-copy: "schlüssel-1" is not "b"'), 'header x-copy: "<redacted>" is not "b"');
});

test("what is computed from a secret is hidden, unless it is true or false", () => {
  const secrets = of();
  secrets.remember(["authorization", "Bearer abcdefgh"]);
  const text =
    '[request.headers.authorization.split(" ")[1].size(), jwt.sub.size(), string(request.body).size()].size() > 1 && request.headers["x-tenant"].startsWith("t")';
  const request = {
    method: "GET",
    scheme: "http",
    authority: "a",
    path: "/",
    search: "",
    version: "",
    body: Buffer.of(65),
  };
  const headers = ["authorization", "Bearer abcdefgh", "x-tenant", "tenant"];
  const { parts } = STANDARD_ENVIRONMENT.compileCondition(text, "request").observe({
    request: { ...request, headers },
    jwt: { sub: "alice" },
  });
  const shown = parts.map((part) => [text.slice(part.from, part.to), secrets.part(part).value]);
  assert.deepEqual(Object.fromEntries(shown), {
    'request.headers.authorization.split(" ")[1].size()': "<redacted>",
    'request.headers.authorization.split(" ")[1]': "<redacted>",
    'request.headers.authorization.split(" ")': "<redacted>",
    "jwt.sub.size()": 5,
    "string(request.body).size()": "<redacted>",
    "string(request.body)": "<redacted>",
    '[request.headers.authorization.split(" ")[1].size(), jwt.sub.size(), string(request.body).size()].size() > 1': true,
    '[request.headers.authorization.split(" ")[1].size(), jwt.sub.size(), string(request.body).size()].size()':
      "<redacted>",
    'request.headers["x-tenant"].startsWith("t")': true,
  });
});

test("attributes of cookies are not secrets, and short values are not searched for", () => {
  const secrets = of();
  secrets.remember(["set-cookie", "sid=12345678; Path=/checkout; HttpOnly", "cookie", "lang=en"]);
  assert.deepEqual(secrets.data({ a: "/checkout", b: "HttpOnly", c: "when", d: "12345678" }), {
    a: "/checkout",
    b: "HttpOnly",
    c: "when",
    d: "<redacted>",
  });
});

test("data is redacted by name, details of a policy only by value", () => {
  const shown = of().data({ sub: "alice", accessToken: "x", list: [{ password: "y", count: 1 }], secret: null });
  assert.deepEqual(shown, {
    sub: "alice",
    accessToken: "<redacted>",
    list: [{ password: "<redacted>", count: 1 }],
    secret: null,
  });
  assert.deepEqual(of().details({ session: "expired", url: "http://a/?ticket=1&page=2" }), {
    session: "expired",
    url: "http://a/?ticket=<redacted>&page=2",
  });
});

test("an input of a rule is redacted by the names of its path; what is absent is shown as that", () => {
  assert.equal(of().input(["headers", "x-tenant"], "acme"), "<redacted>");
  assert.equal(of().input(["claims", "password", "hint"], "dog"), "<redacted>");
  assert.equal(of().input(["headers", "x-tenant"], null), null);
  assert.equal(of().input(["headers", "accept"], "all"), "all");
});

test("reveal shows everything except what a policy hides", () => {
  const secrets = of(true);
  secrets.hide("header", "x-injected");
  const headers = ["authorization", "Bearer abcdefgh", "x-injected", "secret-of-the-gateway"];
  assert.deepEqual(secrets.headers(headers), { authorization: "Bearer abcdefgh", "x-injected": "<redacted>" });
  assert.equal(secrets.target("?ticket=1"), "?ticket=1");
});

test("values that are deep or long are truncated", () => {
  let deep: unknown = "end";
  for (let i = 0; i < 100; i++) deep = [deep];
  assert.match(JSON.stringify(of().data(deep)), /^\[{20}"…"\]{20}$/);
  assert.equal(String(of().input(["a"], "x".repeat(1000))).length, 201);
});
