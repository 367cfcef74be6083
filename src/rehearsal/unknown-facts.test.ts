import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { irOf } from "../../test/helpers/supervisor.ts";
import { readAssumptions } from "./assumptions.ts";
import { Choices } from "./choices.ts";
import { BadFacts, factsOfRequest } from "./facts.ts";
import { Rehearsal } from "./rehearsal.ts";
import { UnknownFacts } from "./unknown-facts.ts";

const ENV = { OIDC_COOKIE_SECRET: "0".repeat(64) };
const KEY = new Uint8Array(32);
const SETTINGS = { sensitiveHeaders: [], perRequest: 1000, sessionKey: KEY, oidcCookieKey: KEY };

interface Request {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly assume?: Readonly<Record<string, unknown>>;
}

/** Of the last rehearsal. */
let omitted = 0;

async function rehearse(policies: object, request: Request) {
  return rehearseRoutes([{ name: "all", policies, backends: [{ host: "127.0.0.1:9" }] }], request);
}

async function rehearseRoutes(
  routes: readonly object[],
  { path = "/x", headers = {}, body = "", assume = {} }: Request,
) {
  const rehearsal = new Rehearsal(irOf({ binds: [{ port: 80, listeners: [{ routes }] }] }, ENV), SETTINGS);
  try {
    const facts = factsOfRequest({
      url: `http://a.test${path}`,
      method: "POST",
      headers: Object.entries(headers),
      body,
    });
    const all = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), readAssumptions(assume));
    omitted = all.omitted;
    return all.outcomes;
  } finally {
    rehearsal.close();
  }
}

/** Status and what was given, for each outcome. */
async function outcomes(rules: readonly object[], request: Request) {
  const all = await rehearse({ authorization: { rules } }, request);
  return all.map(({ record, given }) => [record?.status, ...Object.values(given)]);
}

const ANNOUNCED = { headers: { "content-length": "4" } };

test("a body that is announced but not there: an outcome for each result of a condition that reads it", async () => {
  const rules = [{ deny: 'string(request.body) == "drop"' }];
  assert.deepEqual(await outcomes(rules, ANNOUNCED), [
    [403, true],
    [200, false],
  ]);
  assert.deepEqual(await outcomes(rules, { headers: { "transfer-encoding": "chunked" } }), [
    [403, true],
    [200, false],
  ]);
  assert.deepEqual(await outcomes(rules, { ...ANNOUNCED, assume: { body: "drop" } }), [[403, "drop"]]);
  assert.deepEqual(await outcomes(rules, { ...ANNOUNCED, assume: { body: "keep it" } }), [[200, "keep it"]]);
  assert.deepEqual(await outcomes(rules, { body: "drop" }), [[403]]);
  const [first] = await rehearse({ authorization: { rules } }, ANNOUNCED);
  assert.deepEqual(first?.needs, [
    {
      what: "the body of the request",
      supply: { kind: "body" },
      choice: 'condition string(request.body) == "drop"',
    },
  ]);
});

test("what is not known spreads by the rules of CEL, so what is known can decide", async () => {
  const hidden = { headers: { "x-role": "<redacted>", team: "<redacted>", cookie: "a=1" } };
  const role = 'request.headers["x-role"]';
  const certain: Readonly<Record<string, number>> = {
    [`request.method == "POST" || ${role} == "ops"`]: 200,
    [`${role} == "ops" || request.method == "POST"`]: 200,
    [`${role} == "ops" && request.method == "GET"`]: 403,
    "has(request.headers.team)": 200,
    "has(request.headers.role)": 403,
    'has(request.headers.cookie) && request.headers.cookie("a") == "1"': 200,
    [`request.method == "POST" ? true : ${role} == "ops"`]: 200,
  };
  for (const [allow, status] of Object.entries(certain))
    assert.deepEqual(await outcomes([{ allow }], hidden), [[status]], allow);
  const open = [
    `${role} == "ops" || request.headers.none == "x"`,
    `${role} == "ops" && int("x" + request.method) == 1`,
    `int("x" + request.method) == 1 || ${role} == "ops"`,
    `!(${role} in ["a", "b"])`,
    `coalesce(${role}, "b") == "b"`,
    `["a", "b"].exists(x, x == ${role})`,
    `cel.bind(r, ${role}, r.size() > 3) ? true : false`,
    "request.headers.exists(name, request.headers[name] == 'ops')",
  ];
  for (const allow of open)
    assert.deepEqual(
      await outcomes([{ allow }], hidden),
      [
        [200, true],
        [403, false],
      ],
      allow,
    );
});

test("a condition that depends on several things needs all of them", async () => {
  const hidden = { headers: { "x-a": "<redacted>", "x-b": "Bearer <redacted>" } };
  const rules = [{ allow: 'request.headers["x-a"] == "1" || request.headers["x-b"] == "1"' }];
  const [first] = await rehearse({ authorization: { rules } }, hidden);
  assert.deepEqual(
    first?.needs.map(({ what }) => what),
    ["the field x-a", "the field x-b"],
  );
});

test("a condition that does not matter for the outcome is no choice", async () => {
  const hidden = { headers: { "x-role": "<redacted>" } };
  const rules = [{ deny: 'request.method == "POST"' }, { deny: 'request.headers["x-role"] == "ops"' }];
  assert.deepEqual(await outcomes(rules, hidden), [[403]]);
  const [only] = await rehearse({ authorization: { rules } }, hidden);
  assert.deepEqual(only?.needs, []);
});

test("time and chance are not known, unless they are assumed", async () => {
  const late = [{ deny: 'request.startTime > timestamp("2026-06-01T00:00:00Z")' }];
  assert.equal((await outcomes(late, {})).length, 2);
  const time = (text: string) => ({ assume: { time: text } });
  assert.equal((await outcomes(late, time("2026-01-31T12:00:00Z")))[0]?.[0], 200);
  assert.equal((await outcomes(late, time("2026-07-31T12:00:00Z")))[0]?.[0], 403);
  const rare = [{ allow: "random() < 0.1" }];
  assert.equal((await outcomes(rare, {})).length, 2);
  assert.deepEqual(await outcomes(rare, { assume: { random: 0.05 } }), [[200, 0.05]]);
  await assert.rejects(outcomes([], { assume: { random: 0.05 } }), BadFacts);
});

test("a value that depends on what is not known is made from what there is, and the outcome says so", async () => {
  const set = { "x-length": "string(size(request.body))" };
  const [only, ...others] = await rehearse({ transformations: { request: { set } } }, ANNOUNCED);
  assert.equal(others.length, 0);
  assert.equal(only?.record?.status, 200);
  assert.deepEqual(
    only?.needs.map(({ what, choice }) => [what, choice]),
    [["the body of the request", undefined]],
  );
});

test("functions of the configuration that read what is not known are not known either", async () => {
  const routes = [
    { policies: { authorization: { rules: [{ allow: "isOps()" }] } }, backends: [{ host: "127.0.0.1:9" }] },
  ];
  const customFunctions = 'isOps() { request.headers["x-role"] == "ops" }';
  const ir = irOf({ config: { customFunctions }, binds: [{ port: 80, listeners: [{ routes }] }] });
  const rehearsal = new Rehearsal(ir, SETTINGS);
  const of = async (role: string) => {
    const facts = factsOfRequest({ url: "http://a.test/x", headers: [["x-role", role]], body: "" });
    return (await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), {})).outcomes.map(
      ({ record }) => record?.status,
    );
  };
  assert.deepEqual(await of("<redacted>"), [200, 403]);
  assert.deepEqual(await of("ops"), [200]);
  rehearsal.close();
});

const { publicKey } = generateKeyPairSync("ed25519");
const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k" }] });
const jwtAuth = { issuer: "https://issuer.test", jwks };

test("a redacted credential is valid or invalid; what it says about the client is not known unless it is assumed", async () => {
  const policies = { jwtAuth, authorization: { rules: [{ allow: 'jwt.sub == "a"' }] } };
  const of = async (request: Request) =>
    (await rehearse(policies, request)).map(({ record, given }) => [record?.status, ...Object.values(given)]);
  for (const authorization of ["Bearer <redacted>", "<redacted>"])
    assert.deepEqual(await of({ headers: { authorization } }), [
      [200, "valid", true],
      [401, "invalid"],
      [403, "valid", false],
    ]);
  assert.deepEqual(await of({}), [[403]]);
  assert.deepEqual(await of({ assume: { jwt: { sub: "a" } } }), [[200, { sub: "a" }]]);
  assert.deepEqual(await of({ assume: { jwt: { sub: "b" } } }), [[403, { sub: "b" }]]);
  assert.deepEqual(await of({ assume: { jwt: "invalid" } }), [[401, "invalid"]]);
});

const credentials: readonly [kind: "apiKey" | "basicAuth", policy: object, client: object, rule: string][] = [
  ["apiKey", { mode: "strict", keys: [{ key: "k" }] }, { team: "a" }, 'apiKey.team == "a"'],
  [
    "basicAuth",
    { mode: "strict", htpasswd: "a:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=" },
    { username: "a" },
    'basicAuth.username == "a"',
  ],
];
for (const [kind, policy, client, allow] of credentials)
  test(`${kind} can be assumed too`, async () => {
    const policies = { [kind]: policy, authorization: { rules: [{ allow }] } };
    const of = async (request: Request) => (await rehearse(policies, request)).map(({ record }) => record?.status);
    assert.deepEqual(await of({}), [401]);
    assert.deepEqual(await of({ assume: { [kind]: client } }), [200]);
    assert.deepEqual(await of({ assume: { [kind]: "invalid" } }), [401]);
    assert.deepEqual(await of({ headers: { authorization: "<redacted>" } }), [200, 401, 403]);
  });

test("a session of oidc can be assumed", async () => {
  const policy = {
    issuer: "https://issuer.test",
    authorizationEndpoint: "https://issuer.test/a",
    tokenEndpoint: "https://issuer.test/t",
    jwks,
    clientId: "c",
    clientSecret: "s",
    redirectURI: "https://a.test/back",
  };
  const policies = { oidc: policy, authorization: { rules: [{ allow: 'jwt.sub == "a"' }] } };
  const of = async (request: Request) => (await rehearse(policies, request)).map(({ record }) => record?.status);
  assert.deepEqual(await of({ assume: { oidc: { sub: "a" } } }), [200]);
  assert.deepEqual(await of({ assume: { oidc: { sub: "b" } } }), [403]);
  assert.notEqual((await of({ assume: { oidc: "invalid" } }))[0], 200);
});

test("of very many outcomes some are tried, and the others are counted", async () => {
  const names = ["x-a", "x-b", "x-c", "x-d", "x-e"];
  const headers = Object.fromEntries(names.map((name) => [name, "<redacted>"]));
  const rules = names.map((name) => ({ allow: `request.headers["${name}"] == "1"` }));
  const all = await outcomes(rules, { headers });
  assert.ok(all.length > 1 && all.length <= 16, `${all.length}`);
  assert.ok(omitted > 0);
  await outcomes(rules.slice(0, 2), { headers });
  assert.equal(omitted, 0);
});

test("a redacted field or parameter that routes match on: an outcome for each route that it may lead to", async () => {
  const route = (name: string, match: object) => ({ name, matches: [match], backends: [{ host: "127.0.0.1:9" }] });
  const header = (value: object, name = "X-Env") => ({ headers: [{ name, value }] });
  const routes = [
    route("a", header({ exact: "alpha" })),
    route("b", header({ exact: "beta" })),
    route("r", header({ regex: "g.*" })),
    route("rest", {}),
  ];
  const ways = async (of: readonly object[], request: Request) => {
    const all = await rehearseRoutes(of, request);
    return all.map(({ record, given, needs }) => [
      record?.route,
      ...Object.keys(given),
      ...new Set(needs.map(({ what }) => what)),
    ]);
  };
  const a = 'condition request.headers["x-env"] == "alpha"';
  const b = 'condition request.headers["x-env"] == "beta"';
  const r = 'condition request.headers["x-env"].matches("g.*")';
  const field = "the field x-env";
  assert.deepEqual(await ways(routes, { headers: { "x-env": "<redacted>" } }), [
    ["default/a", a, field],
    ["default/b", a, b, field],
    ["default/r", a, b, r, field],
    ["default/rest", a, b, r, field],
  ]);
  assert.deepEqual(await ways(routes, { headers: { "x-env": "beta" } }), [["default/b"]]);
  // A field has one value, so of many routes each is one outcome.
  const many = Array.from({ length: 10 }, (_, i) => route(`r${i}`, header({ exact: String(i) })));
  assert.equal((await ways([...many, route("rest", {})], { headers: { "x-env": "<redacted>" } })).length, 11);
  assert.equal(omitted, 0);
  // The value that a route wants of a secret field is secret too.
  const secrets = ["one", "two"].map((each) => route(each, header({ exact: each }, "authorization")));
  const shown = JSON.stringify(await ways(secrets, { headers: { authorization: "<redacted>" } }));
  assert.match(shown, /condition request\.headers\[.*authorization.*\] == .*<redacted 1>/);
  assert.match(shown, /<redacted 2>/);
  assert.doesNotMatch(shown, /== \W*(one|two)/);
  // In all outcomes a number stands for the same secret.
  const token = (exact: string) => ({ query: [{ name: "token", value: { exact } }] });
  const two = [
    route("both", { ...header({ exact: "any" }, "authorization"), ...token("one") }),
    route("other", token("two")),
    route("rest", {}),
  ];
  const both = await rehearseRoutes(two, { path: "/x?token=<redacted>", headers: { authorization: "<redacted>" } });
  const met = both.flatMap(({ record, given }) =>
    Object.keys(given).flatMap((name) =>
      given[name] === true && name.includes("token") ? [[record?.route, name]] : [],
    ),
  );
  const wanted = (number: number) => `condition request.uri.query("token") == "<redacted ${number}>"`;
  assert.deepEqual(met, [
    ["default/both", wanted(2)],
    ["default/other", wanted(3)],
    ["default/other", wanted(3)],
  ]);
  const query = [route("q", { query: [{ name: "token", value: { exact: "t" } }] }), route("rest", {})];
  const parameter = ['condition request.uri.query("token") == "<redacted 1>"', "the query parameter token"];
  assert.deepEqual(await ways(query, { path: "/x?token=<redacted>" }), [
    ["default/q", ...parameter],
    ["default/rest", ...parameter],
  ]);
});

test("a client's certificate that is assumed is known of a request that is over", () => {
  const known = { time: new Date(0), source: false, certificate: false };
  const facts = { ...factsOfRequest({ url: "https://a/", headers: [], body: "" }), partly: known };
  const at = (given: object, partly = known) => {
    const choices = new Choices();
    choices.begin({ ...given }, true);
    const unknowns = new UnknownFacts(choices);
    unknowns.begin({ ...facts, partly }, new Set());
    return unknowns.at(["source", "subjectCn"], false);
  };
  assert.ok(at({}) instanceof Object);
  assert.equal(at({ clientCertificate: "PEM" }), undefined);
  assert.equal(at({}, { ...known, certificate: true }), undefined);
});
