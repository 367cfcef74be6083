import assert from "node:assert/strict";
import { test } from "node:test";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
import { SENSITIVE_HEADERS, SensitiveNames } from "../base/sensitive-names.ts";
import type { RequestRecord } from "../recorder/records.ts";
import { type EvaluatedPart, type Evaluation, evaluate, readExpressionQuestion } from "./evaluate.ts";
import { BadFacts } from "./facts.ts";

const hidden = new SensitiveNames(SENSITIVE_HEADERS);
const RECORD: RequestRecord = {
  time: "2026-01-02T03:04:05.000Z",
  worker: 0,
  number: 7,
  generation: 1,
  duration: 12,
  method: "GET",
  host: "shop.example",
  path: "/cart",
  status: 503,
  reason: "UpstreamFailure",
  received: 0,
  sent: 0,
  attempts: 2,
};
const RECORDED = {
  record: RECORD,
  parts: {
    request: {
      method: "GET",
      scheme: "http",
      authority: "shop.example",
      path: "/cart",
      search: "",
      version: "HTTP/1.1",
      headers: [],
    },
    response: { status: 503, headers: [] },
    backend: { name: "shop" },
    record: {
      route: "default/shop",
      listener: "web",
      endpoint: "",
      error: "",
      reason: "UpstreamFailure",
      policy: "",
      duration: 12,
      attempts: 2,
    },
  },
};

function ask(expression: string, question: object = {}, functions = "", perRequest = 1000): Evaluation {
  const read = readExpressionQuestion({ expression, ...question });
  return evaluate(read, { functions, hidden, perRequest, recorded: "id" in read.about ? RECORDED : undefined });
}

/** The values of the parts by their texts, with those that have none. */
function parts(expression: string, question?: object): Record<string, unknown> {
  const found = ask(expression, question).parts.map(({ from, to, value, error }) => [
    expression.slice(from, to),
    error ?? value,
  ]);
  return Object.fromEntries(found);
}

const POST = {
  url: "http://shop.example/cart?page=2&token=s3cr3t-token",
  headers: { "x-role": "admin", authorization: "Bearer s3cr3t-bearer" },
  body: '{"total": 12.5}',
};

test("every part has its value and type, paths too", () => {
  const expression = 'request.path.startsWith("/cart") && request.headers["x-role"] == "admin"';
  assert.deepEqual(ask(expression, { request: POST }), {
    type: "bool",
    value: true,
    parts: [
      { from: 0, to: 32, value: true, type: "bool" },
      { from: 0, to: 12, value: "/cart", type: "string" },
      { from: 36, to: 72, value: true, type: "bool" },
      { from: 36, to: 61, value: "admin", type: "string" },
    ],
  });
  assert.deepEqual(ask("json(request.body).total * 2.0", { request: POST }).value, 25);
  assert.deepEqual(
    ask("request.method + ' ' + source.address", { request: { ...POST, source: "192.0.2.7" } }).value,
    "POST 192.0.2.7",
  );
  assert.deepEqual(parts('jwt.groups.exists(g, g == "ops")', { assume: { jwt: { groups: ["dev", "ops"] } } }), {
    "jwt.groups": ["dev", "ops"],
  });
});

test("what is in a loop has a value for each of the first turns, also in loops within loops", () => {
  const expression = 'jwt.groups.filter(g, g != "x").exists(g, g.startsWith(request.method) || g == "ops")';
  const {
    value,
    turns,
    moreTurns,
    parts: all,
  } = ask(expression, {
    request: POST,
    assume: { jwt: { groups: ["x", "dev", "ops", "late"] } },
  });
  assert.equal(value, true);
  const said = (some: readonly EvaluatedPart[]) =>
    some.map(({ from, to, ...part }) => `${expression.slice(from, to)} → ${JSON.stringify(part.value)}`);
  assert.deepEqual(
    turns?.map(({ variables, parts: own }) => [variables, ...said(own)]),
    [
      [
        [{ name: "g", value: "dev", type: "string" }],
        'g.startsWith(request.method) || g == "ops" → false',
        "g.startsWith(request.method) → false",
        'request.method → "POST"',
        'g == "ops" → false',
      ],
      [
        [{ name: "g", value: "ops", type: "string" }],
        'g.startsWith(request.method) || g == "ops" → true',
        "g.startsWith(request.method) → false",
        'request.method → "POST"',
        'g == "ops" → true',
      ],
    ],
    "until the result is certain",
  );
  assert.equal(moreTurns, undefined);
  const [filter] = all;
  assert.deepEqual(said(all), [
    'jwt.groups.filter(g, g != "x") → ["dev","ops","late"]',
    'jwt.groups → ["x","dev","ops","late"]',
  ]);
  assert.deepEqual(
    filter?.turns?.map(({ parts: own }) => own.map((part) => part.value)),
    [[false], [true], [true], [true]],
  );
  // Loops in loops, which are bounded together; what follows a loop belongs to the turn around it.
  const nested = ask("lists.range(9).map(i, lists.range(10).all(k, k < 20) && i < 5)");
  const [first, ...others] = nested.turns ?? [];
  assert.deepEqual([others.length + 1, nested.moreTurns], [8, 1]);
  const [, inner, , last] = first?.parts ?? [];
  assert.deepEqual([inner?.turns?.length, inner?.moreTurns, last?.value], [8, 2, true]);
  const shownTurns = (nested.turns ?? []).reduce((sum, turn) => sum + (turn.parts[1]?.turns?.length ?? 0) + 1, 0);
  assert.equal(shownTurns, 64);
  const filtered = ask("[1, 2, 3].map(n, n > 1, n * 10)");
  assert.deepEqual(
    filtered.turns?.map(({ parts: own }) => own.map((part) => part.value)),
    [[false], [true, 20], [true, 30]],
    "a turn begins with its filter",
  );
  const two = ask("request.headers.transformList(name, value, name + value)", { request: POST });
  assert.match(JSON.stringify(two.turns), /"name":"name","value":"x-role".*"name":"value","value":"admin"/);
  assert.doesNotMatch(JSON.stringify(two), /s3cr3t/);
});

test("secrets of the request are not shown, wherever they are", () => {
  const all = JSON.stringify([
    ask("request.headers", { request: POST }),
    ask("variables()", { request: POST }),
    ask('request.headers.authorization.split(" ")[1] + "!"', { request: POST }),
    ask("request.headers.map(name, request.headers[name])", { request: POST }),
    ask("request.uri", { request: POST }),
  ]);
  assert.match(all, /<redacted>/);
  assert.match(all, /x-role.*admin/);
  assert.doesNotMatch(all, /s3cr3t/);
  assert.equal(ask('request.headers.authorization == "Bearer s3cr3t-bearer"', { request: POST }).value, true);
});

test("each fact and each assumption is in its variable", () => {
  const got = (expression: string, question: object): unknown => ask(expression, question).value;
  assert.equal(got("request.version", { request: { ...POST, version: "2" } }), "HTTP/2");
  assert.equal(got("request.headers.host", { request: POST }), "shop.example", "once");
  assert.equal(got("request.pathAndQuery", { request: { url: "http://a/b?page=2" } }), "/b?page=2");
  assert.equal(got("jwt.sub", { assume: { oidc: { sub: "o" } } }), "o");
  assert.equal(got("extauthz.team", { assume: { extAuthz: { metadata: { team: "a" } } } }), "a");
  const call = { scope: "response", assume: { response: { headers: { "grpc-status": "5" } } } };
  assert.equal(got("response.grpcStatus", call), 5);
  assert.equal(got("extauthz == null", { assume: { extAuthz: "allow" } }), true);
  const { needs, problem } = ask("jwt.sub", { assume: { jwt: "valid" } });
  assert.equal(needs?.[0]?.what, "the variable jwt", "that a token is valid says nothing about the client");
  assert.equal(problem, undefined, "what is not known is no mistake");
  const inTls = { ...RECORDED, parts: { ...RECORDED.parts, request: { ...RECORDED.parts.request, scheme: "https" } } };
  const question = readExpressionQuestion({ expression: "request.scheme", id: "0-7" });
  assert.equal(evaluate(question, { functions: "", hidden, perRequest: 1000, recorded: inTls }).value, "https");
  const cookie = { scope: "response", assume: { response: { headers: { "set-cookie": "sid=s3cr3t-session" } } } };
  assert.doesNotMatch(
    JSON.stringify(ask('string(response.headers["set-cookie"]).split("=")[1] + "!"', cookie)),
    /s3cr3t/,
  );
});

test("what is not known has no value, and how to supply it is said", () => {
  const unknown = ask('jwt.sub == "a" && request.path == "/"');
  assert.equal(unknown.value, undefined);
  assert.deepEqual(unknown.needs, [
    { what: "the variable jwt", supply: { kind: "assumption", name: "jwt", examples: ['{"sub":"a"}'] } },
    { what: "the request", supply: { kind: "request" } },
  ]);
  assert.equal(ask('jwt.sub == "a" && request.path == "/"', { request: POST }).value, false, "whatever the token says");
  const assume = { jwt: { sub: "a" }, response: { status: 503, headers: { "retry-after": "1" } } };
  assert.equal(ask("jwt.sub + string(response.code)", { scope: "response", assume }).value, "a503");
  assert.equal(ask("jwt == null", { assume: { jwt: "invalid" } }).value, true);
  assert.deepEqual(ask("request.startTime", { request: POST }).needs?.[0]?.what, "the time of the request");
  assert.equal(
    ask("request.startTime.getFullYear()", { request: POST, assume: { time: "2026-01-31T12:00:00Z" } }).value,
    2026,
  );
});

test("a recorded request: what its record has, and what is supplied besides", () => {
  assert.equal(ask("response.code >= 500 && attempts > 1", { scope: "record", id: "0-7" }).value, true);
  assert.deepEqual(parts('duration > duration("5ms")', { scope: "record", id: "0-7" }), { duration: "0.012s" });
  assert.equal(ask('request.path == "/cart"', { id: "0-7" }).value, true);
  assert.deepEqual(ask('request.headers["x-role"]', { id: "0-7" }).needs, [
    { what: "the field x-role", supply: { kind: "field", name: "x-role" } },
  ]);
  assert.equal(ask('request.headers["x-role"]', { id: "0-7", request: { headers: { "x-role": "dev" } } }).value, "dev");
  assert.deepEqual(ask("route", { scope: "record" }).needs?.[0]?.supply, { kind: "record" });
});

test("a mistake has its place and what was probably meant; a failure has its reason", () => {
  const { problem, ...rest } = ask("request.path == 1 &&\n  request.methd == 'GET'");
  assert.deepEqual(rest, { parts: [] });
  assert.match(
    ask("request.methd").problem?.message ?? "",
    /did you mean method\?\n {2}request\.methd\n.*\^ line 1, column \d+/,
  );
  assert.match(problem?.what ?? "", /no such overload/);
  const failed = ask('request.headers["x-none"].size() > 1', { request: POST });
  assert.match(failed.problem?.what ?? "", /x-none/);
  assert.equal(failed.type, "bool");
  assert.match(ask("jwt", { scope: "record" }).problem?.message ?? "", /unknown variable jwt/);
  assert.equal(ask("twice(request.path)", { request: POST }, "twice(x) { x + x }").value, "/cart/cart");
});

test("the client's certificate is that of the request, also without its key", { skip: noOpenssl }, () => {
  const certificate = new TestCa().issue("client", "spiffe://example/ns/shop/sa/cart").cert;
  const request = { ...POST, url: "https://shop.example/cart", certificate };
  assert.equal(ask("source.subjectCn + source.identity.serviceAccount", { request }).value, "clientcart");
  const assumed = { assume: { clientCertificate: certificate } };
  assert.equal(ask("source.subjectCn", { request: { url: "https://a/" }, ...assumed }).value, "client");
  assert.equal(ask("has(source.subjectCn)", { request: { url: "https://a/" } }).value, false, "a client without one");
  // Of a recorded request, only what is supplied is known.
  assert.equal(ask("source.subjectCn", { id: "0-7", request: { certificate } }).value, "client");
  assert.equal(ask("source.subjectCn", { id: "0-7", ...assumed }).value, "client");
  assert.deepEqual(ask("source.subjectCn", { id: "0-7" }).needs?.[0]?.what, "the client's certificate");
  assert.throws(
    () =>
      ask("1", {
        request: { ...request, certificate: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" },
      }),
    (error) => error instanceof BadFacts && error.message === "the client's certificate cannot be read",
  );
});

test("an expression has the budget of one request", () => {
  const expression = "lists.range(100).map(x, x * 2).size()";
  assert.equal(ask(expression, {}, "", 1000).value, 100);
  assert.match(
    ask(expression, {}, "", 1).problem?.what ?? "",
    /too much work .* raise config\.expressions\.perRequest/,
  );
});

test("an expression that does too much work ends", () => {
  const loops = "[1,2,3,4,5,6,7,8,9,10]";
  const many = `lists.range(1000).map(a, ${loops}.map(b, a * b).size()).size()`;
  assert.match(ask(`lists.range(1000).map(x, ${many}).size()`).problem?.what ?? "", /too much work/);
});

test("a question that has no answer says what to write", () => {
  for (const [question, message] of [
    [{ scope: "records" }, /scope: unknown "records"/],
    [{ requests: {} }, /requests: unknown field/],
    [{ config: "binds: []", request: POST }, /config: unknown field/],
    [{ assume: { extAuthz: "maybe" } }, /extAuthz cannot be "maybe"/],
    [{ assume: { endpoints: "healthy" } }, /no variable has the value of endpoints/],
    [{ request: { url: "http://shop.example/", source: "nobody" } }, /nobody is not an IP address/],
  ] as const)
    assert.throws(
      () => ask("1 + 1", question),
      (error) => error instanceof BadFacts && message.test(error.message) && error.hint !== "",
    );
});
