import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { GatewayProcess } from "../../helpers/gateway.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { call, traceOf } from "../trace/support.ts";

let planted = 0;
const secret = (): string => `PLANTED-${planted++}`;
const text = (): string => `'${secret()}'`;
const KEY = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "pem", type: "pkcs8" });
const HASH = "QYJmB5F+iVrWAUm43BYdcOjb3uU=";
const NO_UPSTREAM = "127.0.0.1:1";

/** Of a service that the gateway calls. */
const callPolicies = () => ({
  backendAuth: {
    key: { value: secret(), location: { header: { name: "x-call" } } },
    credentials: [{ location: { header: { name: "x-more" } }, key: secret() }],
  },
  requestHeaderModifier: { set: { authorization: secret() }, add: { cookie: secret(), "x-mine": secret() } },
  backendTunnel: { proxy: { host: NO_UPSTREAM }, policies: { backendAuth: { key: secret() } } },
});

function routes(host: string): object[] {
  const route = (name: string, policies: object, backend?: object): object => ({
    name,
    matches: [{ path: { exact: `/${name}` } }],
    policies,
    ...(backend !== undefined && { backends: [{ host, policies: backend }] }),
  });
  return [
    route("users", {
      apiKey: { mode: "optional", keys: [{ key: secret() }], location: { header: { name: "x-key" } } },
      basicAuth: { mode: "optional", realm: "r", htpasswd: `alice:{SHA}${HASH}` },
    }),
    route("login", {
      oidc: {
        issuer: `http://${NO_UPSTREAM}`,
        authorizationEndpoint: `http://${NO_UPSTREAM}/a`,
        tokenEndpoint: `http://${NO_UPSTREAM}/t`,
        jwks: '{"keys":[]}',
        clientId: "c",
        clientSecret: secret(),
        redirectURI: "http://a.test/back",
      },
    }),
    route("services", {
      extAuthz: {
        host,
        protocol: { http: { addRequestHeaders: { authorization: text(), "x-mine": text() } } },
        policies: { requestHeaderModifier: callPolicies().requestHeaderModifier },
      },
      extProc: { conditional: [{ host: NO_UPSTREAM, failureMode: "failOpen", policies: callPolicies() }] },
      remoteRateLimit: {
        domain: "d",
        host: NO_UPSTREAM,
        descriptors: [{ entries: [{ key: "k", value: "'v'" }] }],
        failureMode: "failOpen",
        policies: callPolicies(),
      },
      directResponse: { conditional: [{ status: 200, headers: { "set-cookie": text(), "x-mine": text() } }] },
    }),
    route(
      "changes",
      {
        transformations: {
          request: {
            replace: `request.headers.merge({'x-api-key': ${text()}})`,
            add: { cookie: text() },
            set: { "x-mine": text() },
          },
          response: { set: { "set-cookie": text() } },
        },
        requestHeaderModifier: { set: { "x-mine": secret() } },
        responseHeaderModifier: { add: { "set-cookie": secret() } },
      },
      {
        backendAuth: {
          jwtSign: { signingKey: KEY, alg: "ES256", kid: "k", claims: { a: 1 } },
          credentials: [
            { location: { header: { name: "x-cred" } }, key: secret() },
            { location: { queryParameter: { name: "q" } }, key: secret() },
            { location: { cookie: { name: "c" } }, key: secret() },
          ],
        },
      },
    ),
    route(
      "exchange",
      {},
      {
        backendAuth: {
          oauthTokenExchange: { host: NO_UPSTREAM, path: "/t", clientAuth: { clientId: "c", clientSecret: secret() } },
        },
      },
    ),
  ];
}

test("dumps, traces and logs contain no secrets of clients, backends or the configuration", async () => {
  await using upstream = await RawUpstream.answering(() => reply("", [`set-cookie: ${secret()}`]));
  await using gateway = await GatewayProcess.start(
    {
      config: { sensitiveHeaders: ["x-mine"] },
      frontendPolicies: {
        accessLog: {
          add: {
            raw: "toJson(request.headers.redacted().raw())",
            split: "toJson(request.headers.redacted().split())",
            joined: "toJson(request.headers.redacted().join())",
            cookie: 'request.headers.redacted().cookie("id")',
          },
        },
      },
      binds: [{ port: 0, listeners: [{ routes: routes(`127.0.0.1:${upstream.port}`) }] }],
    },
    { env: { OIDC_COOKIE_SECRET: "ab".repeat(32) } },
  );
  const shown: string[] = [];
  const admin = async (path: string): Promise<void> => {
    shown.push(await (await fetch(gateway.url("admin") + path)).text());
  };
  const headers = {
    cookie: `id=${secret()}`,
    "proxy-authorization": secret(),
    "x-mine": secret(),
    "x-api-key": secret(),
  };
  for (const [path, status, more] of [
    ["/users", 401, { "x-key": secret() }],
    ["/login", 302, {}],
    ["/services", 200, { authorization: secret() }],
    ["/changes", 200, { authorization: secret() }],
    ["/exchange", 500, { authorization: `Bearer ${secret()}` }],
  ] as const) {
    const events = await traceOf(gateway, async () => {
      assert.equal((await call(gateway.port(), { path, headers: { ...headers, ...more } })).status, status, path);
    });
    shown.push(JSON.stringify(events));
  }
  for (const path of ["/config_dump", "/debug/tasks"]) await admin(path);
  shown.push(JSON.stringify(gateway.lines), gateway.stderr);
  for (const each of shown) {
    const at = each.search(/PLANTED-|PRIVATE KEY|QYJmB5F/);
    assert.equal(at, -1, each.slice(Math.max(0, at - 300), at + 20));
  }
  assert.ok(planted > 30 && shown.join().includes("<redacted>"));
});
