import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Activation,
  Budget,
  CelDuration,
  CelError,
  STANDARD_ENVIRONMENT as cel,
  toBytes,
  toJson,
  toText,
} from "./index.ts";
import { REQUEST } from "./testing/evaluate.ts";

const ACTIVATION: Activation = {
  request: {
    method: "GET",
    scheme: "https",
    authority: "a.example",
    path: "/p",
    search: "?a=1&b=2",
    version: "HTTP/1.1",
    headers: [
      "accept",
      "a, b",
      "accept",
      "c",
      "authorization",
      "Bearer x",
      "cookie",
      'id="7"; theme=dark',
      "x-tenant",
      "acme",
    ],
    sensitive: new Set(["authorization", "cookie", "x-tenant"]),
    body: Buffer.from('{"user":{"name":"Zoë","tags":["x","y"]}}'),
  },
  response: { status: 404, headers: ["content-type", "text/plain"], sensitive: new Set(["content-type"]) },
  source: { address: "10.1.2.3", port: 4711, rawAddress: "::1", rawPort: 1 },
  proxy: { route: { name: "shop" }, upstreamDuration: CelDuration.fromMilliseconds(1.5) },
  jwt: JSON.parse('{"sub":"alice","exp":1700000000,"__proto__":{"own":1},"groups":["dev"]}'),
};

function evaluate(text: string): unknown {
  return toJson(cel.compileExpression(text, "response").evaluate(ACTIVATION));
}

/** Expressions that are true, by what they show. */
const TRUE: Readonly<Record<string, readonly string[]>> = {
  "texts and random values": ['"a-b-c".regexReplace("[a-b]", "x") == "x-x-c"', "uuid().size() == 36 && random() < 1.0"],
  "functions of the reference": [
    '"hello".stripPrefix("he") == "llo" && "hello".stripPrefix("hi") == "hello" && "a.b".stripSuffix(".b") == "a"',
    "max(1, 3, 2) == 3 && max([1.5, 2]) == 2 && min(4, 2) == 2",
    'math.bitAnd(b"\\x05", b"\\x03") == b"\\x01" && math.bitOr(b"\\x00\\x05", b"\\x03") == b"\\x00\\x07"',
    'math.bitAnd(0x4, b"\\x01\\x00\\x05") == 4 && math.bitXor(b"\\x05", 4u) == 1u',
    'request.body.contains("Zoë") && b"abc".contains(b"bc")',
    'request.uri.query("a") == ["1"] && "/?a=1&a=2".query("a") == ["1", "2"]',
  ],
  "comparisons of several types": [
    '1 == 1.0 && 1u == 1 && 2 != 2.5 && !(request.body == "") && request.body != "" && b"" != ""',
    'size(request.path == "/p" ? request.path : request.body) == 2',
  ],
  fallbacks: [
    'default(request.headers["x-absent"], "none") == "none"',
    'coalesce(jwt.nope, null, jwt.sub) == "alice"',
    'request.headers[?"x-absent"].orValue("none") == "none"',
    'jwt.?sub.orValue("") == "alice" && !jwt.?nope.hasValue()',
    'jwt.sub.with(name, name + name) == "alicealice"',
  ],
  addresses: [
    'cidr("10.0.0.0/8").containsIP(source.address) && !cidr("10.2.0.0/16").containsIP(source.address)',
    'cidr("::/0").containsIP(source.rawAddress) && ip(source.rawAddress).isLoopback()',
    'ip("::ffff:10.0.0.1") == ip("10.0.0.1") && ip("10.0.0.1").family() == 4 && !isIP("010.1.1.1")',
    'string(cidr("10.1.2.3/8").masked()) == "10.0.0.0/8" && cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")',
  ],
  "headers, cookies and queries": [
    'request.headers.accept == ["a, b", "c"] && request.headers.join().accept == "a, b,c" && request.headers.raw().accept == ["a, b", "c"]',
    'request.headers.split()["accept"] == ["a", "b", "c"]',
    'request.headers.redacted().authorization == "<redacted>" && request.headers.redacted().accept == ["a, b", "c"]',
    'request.headers.redacted().raw().authorization == ["<redacted>"] && request.headers.raw().redacted().cookie == ["<redacted>"]',
    'request.headers.redacted().split().cookie == ["<redacted>"] && request.headers.redacted().join().authorization == "<redacted>"',
    'request.headers.redacted().cookie("id") == "<redacted>" && !toJson(request.headers.redacted().raw()).contains("Bearer")',
    'request.headers.redacted()["x-tenant"] == "<redacted>" && request.headers["x-tenant"] == "acme"',
    'response.headers.redacted().raw()["content-type"] == ["<redacted>"]',
    'request.headers.cookie("id") == "7" && request.headers.cookie("theme") == "dark"',
    'request.headers["Accept"] == request.headers.accept && !has(response.headers.host)',
    'request.uri.query().b == "2" && request.pathAndQuery.addQuery("a", "3") == "/p?a=1&b=2&a=3"',
    'request.pathAndQuery.setQuery("a", "é") == "/p?a=%C3%A9&b=2"',
  ],
  "values from the proxy": [
    "response.code >= 400 && response.code == 404 && source.port == 4711",
    'proxy.route.name == "shop" && proxy.upstreamDuration > duration("1ms")',
    'variables().jwt.sub == "alice"',
    'jwt.exp - 60 == 1699999940 && timestamp(jwt.exp) > timestamp("2023-01-01T00:00:00Z")',
    'jwt.exp > 1600000000 && int(jwt.exp) + 1 == 1700000001 && "dev" in jwt.groups',
    'timestamp("2024-02-29T23:30:00Z").getDate("Europe/Zurich") == 1',
  ],
};

for (const [name, texts] of Object.entries(TRUE)) {
  test(name, () => {
    for (const text of texts) assert.equal(evaluate(text), true, text);
  });
}

test("only own properties of data can be read", () => {
  const failing = [
    "jwt.constructor",
    "jwt.toString",
    'jwt["hasOwnProperty"]',
    "jwt.groups.length",
    "jwt.sub.length",
    "jwt.nope",
  ];
  for (const text of failing) assert.throws(() => evaluate(text), CelError, text);
  assert.equal(evaluate('jwt["__proto__"].own == 1.0'), true);
  assert.equal(evaluate("has(jwt.constructor)"), false);
});

test("absent variables are null, and has() of their fields is false", () => {
  const given = (text: string): unknown => cel.compileExpression(text, "response").evaluate({});
  for (const text of [
    "jwt == null && backend == null && response == null && request == null",
    "!has(jwt.sub) && !has(jwt.realm.roles) && !has(response.code) && !has(request.headers.accept)",
    'jwt != "x" && jwt[?"sub"].orValue("none") == "none" && jwt.?realm.?roles.orValue([]) == []',
    'default(jwt.sub, "nobody") == "nobody" && coalesce(jwt, "nobody") == "nobody"',
    "variables() == {}",
  ])
    assert.equal(given(text), true, text);
  assert.throws(() => given('jwt.sub == "x"'), /no such key: sub/);
});

test("an expression reports what it reads", () => {
  const reads = (text: string): string[] => [...cel.compileExpression(text, "response").reads].sort();
  assert.deepEqual(reads('request.path == "/" && jwt.sub == "x"'), ["jwt", "request"]);
  assert.deepEqual(reads("size(request.body) > 1"), ["request", "request.body"]);
  assert.deepEqual(reads("toJson(response)"), ["response", "response.body", "response.bodyPrefix"]);
  assert.ok(reads("variables()").includes("request.body"));
});

test("invalid constants are errors of the expression", () => {
  assert.throws(() => cel.compileExpression('cidr("10.0.0.0/40").containsIP("1.2.3.4")'), /is not a network such as/);
  assert.throws(
    () => cel.compileExpression('base64.encod("a")'),
    /unknown function base64\.encod; did you mean base64\.encode\?/,
  );
  assert.throws(() => cel.compileExpression("request.heders"), /request has no field heders; did you mean headers\?/);
  assert.throws(() => cel.compileExpression("fail('stop')").evaluate({}), /^CelError: stop/);
});

test("values as JSON, text and bytes", () => {
  const value = (text: string) => cel.compileExpression(text, "response").evaluate(ACTIVATION);
  assert.deepEqual(
    toJson(value('{"n": 1, "u": 2u, "big": 9223372036854775807, "b": b"hi", "d": duration("1.5s"), "x": null}')),
    {
      n: 1,
      u: 2,
      big: "9223372036854775807",
      b: "aGk=",
      d: "1.5s",
      x: null,
    },
  );
  assert.deepEqual(toJson(value("response")), { code: 404, headers: { "content-type": "text/plain" } });
  assert.deepEqual(
    ["1", "1.5", "true", "'a'", "b'é'", "2u"].map((text) => toText(value(text))),
    ["1", "1.5", "true", "a", "é", "2"],
  );
  assert.equal(toText(value("null")), undefined);
  assert.equal(toText(value("optional.none()")), undefined);
  assert.equal(toText(value('timestamp("2024-01-01T00:00:00.5Z")')), "2024-01-01T00:00:00.5Z");
  assert.throws(() => toText(value("[1]")), /a list or map has no text/);
  assert.deepEqual(Buffer.from(toBytes(value("'é'"))), Buffer.from("é"));
});

test("a pattern that takes long for each character is not tried on a long text", () => {
  const body = Buffer.from("a".repeat(5000));
  const run = (text: string, budget?: Budget): unknown =>
    cel.compileExpression(text).evaluate({ request: { ...REQUEST, body }, budget });
  const large = /too much work/;
  assert.throws(() => run('string(request.body).matches("(a?){1000}a{1000}")'), large);
  assert.throws(() => run('string(request.body).matches(request.method + "(a?){1000}a{1000}")'), large);
  assert.throws(() => run('string(request.body).substring(0, 4000).regexReplace("a.*b|a", "x")'), large);
  for (const [text, result] of [
    ['string(request.body).matches("^[a-z]+$")', true],
    ['string(request.body).substring(0, 1000).regexReplace("^(a)+$", "$1")', "a"],
  ] as const) {
    // Compiles the code first, which on a slow machine takes more time than a request may use.
    for (let i = 0; i < 20; i++) {
      const budget = new Budget();
      budget.microseconds = Number.POSITIVE_INFINITY;
      run(text, budget);
    }
    assert.equal(run(text), result);
  }
});

test("a replacement cannot repeat a long text for each match", () => {
  const body = Buffer.from("a".repeat(1000));
  const text = `string(request.body).regexReplace("a", "${"$'".repeat(100)}").size()`;
  assert.throws(() => cel.compileExpression(text).evaluate({ request: { ...REQUEST, body } }), /too much work/);
});

test("constant patterns are compiled with the expression, however long they are and whatever others use", () => {
  const pattern = `${"(foo|bar)".repeat(20)}?(x)`;
  const expression = cel.compileExpression(`request.path.regexReplace("${pattern}", request.method + "$21")`);
  const path = `/${"foobar".repeat(10)}x`;
  assert.equal(expression.evaluate({ request: { ...REQUEST, path } }), "/GETx");
  assert.throws(() => cel.compileExpression('request.path.regexReplace("(", "x")'), /RE2|missing/);
  const absent = cel.compileExpression('request.headers["x-a"].regexReplace("a", request.headers["x-b"])');
  const headers = ["x-a", "banana", "x-b", "o"];
  assert.equal(absent.evaluate({ request: { ...REQUEST, headers } }), "bonono");
  assert.throws(() => absent.evaluate({ request: { ...REQUEST, headers: headers.slice(0, 2) } }), /no such key: x-b/);
});
