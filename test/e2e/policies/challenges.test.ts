import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, test } from "node:test";
import { exportJWK } from "jose";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { call } from "../trace/support.ts";

const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
const header = (name: string, prefix?: string) => ({ header: { name, ...(prefix !== undefined && { prefix }) } });
const jwt = (location?: object) => ({
  jwtAuth: { mode: "strict", issuer: "https://i.example", jwks, ...(location !== undefined && { location }) },
});
const key = (location?: object) => ({
  apiKey: { mode: "strict", keys: [{ key: "right" }], ...(location !== undefined && { location }) },
});
const cors = { allowOrigins: ["https://shop.example"], allowMethods: ["GET"] };
const oidc = {
  issuer: "http://127.0.0.1:1",
  authorizationEndpoint: "http://127.0.0.1:1/a",
  tokenEndpoint: "http://127.0.0.1:1/t",
  jwks: '{"keys":[]}',
  clientId: "c",
  clientSecret: "s",
  redirectURI: "https://shop.example/back",
};

/** Policies of the route at `/<index>`, a header with a wrong credential, and both challenges. */
const CASES: readonly (readonly [object, Record<string, string>, string, string])[] = [
  [
    jwt(),
    { authorization: "Bearer x" },
    'Bearer realm="Restricted"',
    'Bearer realm="Restricted", error="invalid_token"',
  ],
  [
    jwt({ cookie: { name: "t" } }),
    { cookie: "t=x" },
    'Bearer realm="Restricted"',
    'Bearer realm="Restricted", error="invalid_token"',
  ],
  [
    jwt(header("authorization", "Token ")),
    { authorization: "Token x" },
    'Token realm="Restricted"',
    'Token realm="Restricted"',
  ],
  [
    key(),
    { authorization: "Bearer x" },
    'Bearer realm="Restricted"',
    'Bearer realm="Restricted", error="invalid_token"',
  ],
  [key(header("x-api-key")), { "x-api-key": "x" }, 'ApiKey realm="Restricted"', 'ApiKey realm="Restricted"'],
  [
    { basicAuth: { mode: "strict", realm: 'a "b"', htpasswd: "a:{SHA}QYJmB5F+iVrWAUm43BYdcOjb3uU=" } },
    { authorization: `Basic ${btoa("a:wrong")}` },
    'Basic realm="a \\"b\\""',
    'Basic realm="a \\"b\\""',
  ],
];

const upstream = await RawUpstream.answering(() => reply("ok"));
const backends = [{ host: `127.0.0.1:${upstream.port}` }];
const at = (path: string, policies: object) => ({ matches: [{ path: { pathPrefix: path } }], policies, backends });
const routes = [
  ...CASES.map(([policies], i) => at(`/${i}`, policies)),
  at("/proxy", key(header("proxy-authorization", "Bearer "))),
  at("/login", { oidc, cors }),
  at("/alone", { oidc }),
];
const behindLogin = [at("/shared", { cors }), at("/internal", {})];
const gateway = await TestGateway.start(
  {
    binds: [
      {
        port: 0,
        listeners: [
          { name: "private", hostname: "private.example", policies: { oidc }, routes: behindLogin },
          { name: "open", routes },
        ],
      },
    ],
  },
  { env: { OIDC_COOKIE_SECRET: "ab".repeat(32) } },
);
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

test("a 401 says how to authenticate; for Bearer, also whether there was a token", async () => {
  for (const [i, [, wrong, missing, invalid]] of CASES.entries())
    for (const [headers, challenge] of [
      [{}, missing],
      [wrong, invalid],
    ] as const) {
      const response = await call(gateway.port(), { path: `/${i}`, headers });
      assert.deepEqual([response.status, response.headers["www-authenticate"]], [401, challenge], `case ${i}`);
    }
});

test("credentials for proxies: 407 and Proxy-Authenticate", async () => {
  const { status, headers } = await call(gateway.port(), { path: "/proxy" });
  assert.deepEqual([status, headers["proxy-authenticate"]], [407, 'Bearer realm="Restricted"']);
  assert.equal(headers["www-authenticate"], undefined);
});

test("oidc: clients that cannot log in get a challenge; cookies for https are bound to this host", async () => {
  const script = await call(gateway.port(), { path: "/alone", headers: { "sec-fetch-dest": "empty" } });
  assert.deepEqual([script.status, script.headers["www-authenticate"]], [401, 'Cookie realm="Restricted"']);
  const page = await call(gateway.port(), { path: "/alone" });
  assert.equal(page.status, 302);
  const [cookie = ""] = page.headers["set-cookie"] ?? [];
  assert.match(cookie, /^__Host-tracegate_oidc_t_[^;]+; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=\d+$/);
});

test("oidc: OPTIONS passes only as a preflight that cors responds to, on the route or the gateway", async () => {
  const preflight = { origin: "https://shop.example", "access-control-request-method": "GET" };
  const options = (path: string, host: string, headers: Record<string, string> = preflight) =>
    call(gateway.port(), { method: "OPTIONS", path, headers: { ...headers, host } });
  for (const [path, host, status] of [
    ["/login", "open.example", 200],
    ["/alone", "open.example", 401],
    ["/shared", "private.example", 200],
    ["/internal", "private.example", 401],
  ] as const)
    assert.equal((await options(path, host)).status, status, path);
  const { headers } = await options("/shared", "private.example");
  assert.equal(headers["access-control-allow-origin"], "https://shop.example");
  assert.equal((await options("/shared", "private.example", {})).status, 401);
});
