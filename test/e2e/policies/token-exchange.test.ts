import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { decodeProtectedHeader, exportJWK, jwtVerify, SignJWT } from "jose";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestGateway } from "../../helpers/gateway.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ACCESS = "urn:ietf:params:oauth:token-type:access_token";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const JWT = "urn:ietf:params:oauth:token-type:jwt";

interface Asked {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly form: readonly (readonly [string, string])[];
}

/** A token endpoint: checks the form that RFC 8693 and RFC 7523 require, and returns a token derived from the one it got. */
const asked: Asked[] = [];
let answer: (form: URLSearchParams) => { readonly status?: number; readonly body: unknown } = issue;
const issuer = createServer(async (request, response) => {
  const form = new URLSearchParams(await text(request));
  const { authorization, "content-type": type } = request.headers;
  asked.push({ path: request.url ?? "", authorization, form: [...form] });
  const wellFormed = request.method === "POST" && type === "application/x-www-form-urlencoded";
  const { status = 200, body } = wellFormed ? answer(form) : { status: 405, body: {} };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
});
/** Responds with the path and the headers of the request. */
const upstream = createServer((request, response) =>
  response.end(JSON.stringify({ url: request.url, ...request.headers })),
);
for (const server of [issuer, upstream]) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}
const hostOf = (server: typeof issuer): string => `127.0.0.1:${(server.address() as AddressInfo).port}`;

let configurations = 0;

function issue(form: URLSearchParams): { body: unknown } {
  const given = form.get("subject_token") ?? form.get("assertion");
  const type = form.get("requested_token_type") ?? ACCESS;
  return {
    body: {
      access_token: `${type === ID_JAG ? "jag" : "new"}-${given}`,
      token_type: type === ID_JAG ? "N_A" : "Bearer",
      issued_token_type: type,
      expires_in: 3600,
    },
  };
}

const gateway = await TestGateway.start(config({}));
after(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const server of [issuer, upstream]) {
    server.closeAllConnections();
    server.close();
  }
});

/** Each has its own route name, because an unchanged configuration is not reloaded. */
function config(policies: object, others: object = {}): object {
  return {
    // Each worker has its own cache of tokens.
    config: { workerThreads: 1 },
    ...others,
    binds: [
      {
        port: 0,
        listeners: [{ routes: [{ name: `r${configurations++}`, policies, backends: [{ host: hostOf(upstream) }] }] }],
      },
    ],
  };
}

/** Puts the policies of the route into effect. */
async function use(policies: object, others: object = {}): Promise<void> {
  asked.length = 0;
  answer = issue;
  assert.equal(await gateway.reconfigure(config(policies, others)), "applied");
}

async function call(headers: Record<string, string> = {}, path = "/"): Promise<{ status: number; body: string }> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers });
  return { status: response.status, body: await response.text() };
}

/** What the backend got. */
async function seen(headers: Record<string, string>, path?: string): Promise<Record<string, string>> {
  const { status, body } = await call(headers, path);
  assert.equal(status, 200, body);
  return JSON.parse(body) as Record<string, string>;
}

const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` });
const exchange = (more: object = {}): object => ({
  backendAuth: { oauthTokenExchange: { host: hostOf(issuer), ...more } },
});

test("on a route: the client's token is exchanged once and the new one kept; the form has every parameter", async () => {
  await use(
    exchange({
      path: "/realms/shop/token?x=1",
      audiences: ["a", "b"],
      scopes: ["read", "write"],
      resources: ["https://api.example/"],
      requestedTokenType: ACCESS,
      clientAuth: { clientId: "gate way", clientSecret: "s:cret" },
      additionalParams: { tenant: 'request.headers["x-tenant"]' },
    }),
  );
  const headers = { ...bearer("one"), "x-tenant": "acme" };
  assert.equal((await seen(headers)).authorization, "Bearer new-one");
  assert.equal((await seen(headers)).authorization, "Bearer new-one");
  assert.deepEqual(asked, [
    {
      path: "/realms/shop/token?x=1",
      authorization: `Basic ${btoa("gate+way:s%3Acret")}`,
      form: [
        ["grant_type", EXCHANGE],
        ["subject_token", "one"],
        ["subject_token_type", ACCESS],
        ["requested_token_type", ACCESS],
        ["audience", "a"],
        ["audience", "b"],
        ["scope", "read write"],
        ["resource", "https://api.example/"],
        ["tenant", "acme"],
      ],
    },
  ]);
  // Another token, and the same with another parameter, are other exchanges.
  assert.equal((await seen({ ...bearer("two"), "x-tenant": "acme" })).authorization, "Bearer new-two");
  assert.equal((await seen({ ...bearer("one"), "x-tenant": "other" })).authorization, "Bearer new-one");
  assert.equal(asked.length, 3);
  assert.equal((await call(bearer("one"))).status, 400, "a parameter that fails rejects the request");
  await use(exchange({ additionalParams: { tenant: "jwt" } }));
  assert.equal((await call(bearer("one"))).status, 400, "and one that gives no text");
});

test("without a cache every request causes an exchange; with one, concurrent requests with the same token share it", async () => {
  await use(exchange({ cache: { maxEntries: 0 } }));
  await seen(bearer("one"));
  await seen(bearer("one"));
  assert.equal(asked.length, 2);
  await use(exchange());
  await Promise.all(Array.from({ length: 8 }, () => seen(bearer("one"))));
  assert.equal(asked.length, 1);
});

test("a token that expires within the safety margin, or whose subject does, is not cached", async () => {
  await use(exchange());
  answer = () => ({ body: { access_token: "short", token_type: "bearer", expires_in: 10 } });
  await seen(bearer("one"));
  await seen(bearer("one"));
  assert.equal(asked.length, 2);
  answer = issue;
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ending = await new SignJWT({})
    .setProtectedHeader({ alg: "ES256" })
    .setExpirationTime(Math.floor(Date.now() / 1000) + 10)
    .sign(privateKey);
  await seen(bearer(ending));
  await seen(bearer(ending));
  assert.equal(asked.length, 4);
});

test("the subject: taken from a cookie, a query parameter or an expression, and removed; the new token goes elsewhere", async () => {
  await use(
    exchange({
      subjectToken: { source: { queryParameter: { name: "token" } }, tokenType: JWT },
      authorizationLocation: { header: { name: "x-backend" } },
    }),
  );
  const { url, authorization, "x-backend": put } = await seen(bearer("mine"), "/p?token=query&a=1");
  assert.deepEqual([url, authorization, put], ["/p?a=1", "Bearer mine", "new-query"]);
  assert.equal(new URLSearchParams(asked[0]?.form as [string, string][]).get("subject_token_type"), JWT);
  await use(exchange({ subjectToken: { source: { expression: 'request.headers["x-a"] + "-b"' } } }));
  assert.equal((await seen({ "x-a": "a" })).authorization, "Bearer new-a-b");
});

test("the subject: a token that jwtAuth has verified and removed, only from the location of jwtAuth", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
  const token = await new SignJWT({ sub: "alice" })
    .setProtectedHeader({ alg: "ES256", kid: "k" })
    .setIssuer("i")
    .setExpirationTime("5m")
    .sign(privateKey);
  const jwtAuth = { mode: "strict", issuer: "i", jwks };
  await use({ jwtAuth, ...exchange() });
  assert.equal((await seen(bearer(token))).authorization, `Bearer new-${token}`);
  await use({ jwtAuth, ...exchange({ subjectToken: { source: { header: { name: "x-subject" } } } }) });
  assert.equal((await call(bearer(token))).status, 400);
  assert.equal((await seen({ ...bearer(token), "x-subject": "other" })).authorization, "Bearer new-other");
});

test("without a token, or with one that the server rejects: 400; if the server fails: 500, and nothing is cached", async () => {
  await use(exchange());
  assert.deepEqual(await call(), { status: 400, body: "invalid request" });
  answer = () => ({ status: 400, body: { error: "invalid_grant", error_description: "about one-s3cret" } });
  assert.deepEqual(await call(bearer("one-s3cret")), { status: 400, body: "invalid request" });
  for (const failing of [
    { status: 401, body: { error: "invalid_client" } },
    { status: 503, body: {} },
    { body: { token_type: "Bearer" } },
    { body: { access_token: "a", token_type: "DPoP" } },
    { body: { access_token: "a" } },
    { body: { access_token: "line\nbreak", token_type: "Bearer" } },
    { body: "text" },
  ]) {
    answer = () => failing;
    const { status, body } = await call(bearer(JSON.stringify(failing)));
    assert.deepEqual([status, body], [500, "backend authentication failed"], JSON.stringify(failing));
  }
  answer = issue;
  assert.equal((await seen(bearer("one-s3cret"))).authorization, "Bearer new-one-s3cret");
  assert.ok(!JSON.stringify(gateway.lines).includes("one-s3cret"));
});

test("jwtBearer: the token is the assertion", async () => {
  await use(
    exchange({ grantType: "jwtBearer", clientAuth: { clientId: "c", method: "clientSecretPost", clientSecret: "s" } }),
  );
  assert.equal((await seen(bearer("one"))).authorization, "Bearer new-one");
  assert.deepEqual(asked[0]?.form, [
    ["grant_type", BEARER],
    ["assertion", "one"],
    ["client_id", "c"],
    ["client_secret", "s"],
  ]);
  assert.equal(asked[0]?.authorization, undefined);
});

test("privateKeyJwt: a signed assertion for each call, which may name the certificate", {
  skip: noOpenssl,
}, async () => {
  using ca = new TestCa();
  const { cert: certificate, key: signingKey } = ca.issue("gateway.example");
  const publicKey = createPublicKey(certificate);
  const client = { clientId: "gw", method: "privateKeyJwt", assertionAudience: "https://as.example" };
  await use(exchange({ clientAuth: { ...client, signingKey, alg: "ES256", kid: "k1", certificate } }));
  await seen(bearer("one"));
  await seen(bearer("two"));
  const ids = new Set<unknown>();
  for (const { form } of asked) {
    const sent = new URLSearchParams(form as [string, string][]);
    assert.equal(sent.get("client_assertion_type"), "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    assert.equal(sent.get("client_id"), "gw");
    const { payload, protectedHeader } = await jwtVerify(sent.get("client_assertion") ?? "", publicKey, {
      audience: "https://as.example",
      issuer: "gw",
      subject: "gw",
    });
    assert.deepEqual([protectedHeader.alg, protectedHeader.kid], ["ES256", "k1"]);
    assert.match(String(protectedHeader["x5t#S256"]), /^[\w-]{43}$/);
    assert.equal(Number(payload.exp) - Number(payload.iat), 300);
    ids.add(payload.jti);
  }
  assert.equal(ids.size, 2);
  await use(exchange({ clientAuth: { ...client, signingKey, alg: "ES256", certificate, certificateHeader: "x5c" } }));
  await seen(bearer("one"));
  const sent = new URLSearchParams(asked[0]?.form as [string, string][]);
  assert.equal((decodeProtectedHeader(sent.get("client_assertion") ?? "").x5c as string[]).length, 1);
});

test("an actor: its token is sent with the subject's, and may_act of the subject must name it", async () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const sign = (claims: Record<string, unknown>): Promise<string> =>
    new SignJWT(claims).setProtectedHeader({ alg: "ES256" }).sign(privateKey);
  await use(exchange({ actorToken: { source: { header: { name: "x-actor" } }, tokenType: JWT, enforceMayAct: true } }));
  const subject = bearer(await sign({ may_act: { sub: "agent", aud: ["shop"] } }));
  const agent = await sign({ sub: "agent", aud: ["other", "shop"] });
  const got = await seen({ ...subject, "x-actor": agent });
  assert.match(got.authorization ?? "", /^Bearer new-/);
  assert.equal(got["x-actor"], undefined);
  const form = new URLSearchParams(asked[0]?.form as [string, string][]);
  assert.deepEqual([form.get("actor_token"), form.get("actor_token_type")], [agent, JWT]);
  assert.equal((await call(subject)).status, 400);
  for (const [who, actor] of [
    [subject, await sign({ sub: "agent" })],
    [subject, await sign({ sub: "stranger", aud: "shop" })],
    [subject, "opaque"],
    [bearer(await sign({ may_act: {} })), agent],
    [bearer("opaque"), agent],
  ] as const)
    assert.deepEqual(await call({ ...who, "x-actor": actor }), { status: 403, body: "authorization failed" });
  assert.equal(asked.length, 1);
});

test("the endpoint as a named backend with its own policies; those beside the endpoint win", async () => {
  const backends = [
    {
      name: "idp",
      host: hostOf(issuer),
      policies: { requestHeaderModifier: { set: { authorization: "Basic named" } } },
    },
  ];
  await use({ backendAuth: { oauthTokenExchange: { backend: "/idp" } } }, { backends });
  await seen(bearer("one"));
  assert.equal(asked[0]?.authorization, "Basic named");
  // A header may have the same name as a source of secrets.
  const policies = { backendAuth: { key: "own" }, requestHeaderModifier: { set: { file: "no file" } } };
  await use({ backendAuth: { oauthTokenExchange: { backend: "/idp", policies } } }, { backends });
  await seen(bearer("one"));
  assert.equal(asked[0]?.authorization, "Bearer own");
});

test("a token endpoint whose own credentials come from a token exchange is rejected with the configuration", async () => {
  const backends = [{ name: "idp", host: hostOf(issuer), policies: exchange() }];
  const state = await gateway.reconfigure(
    config({ backendAuth: { oauthTokenExchange: { backend: "/idp" } } }, { backends }),
  );
  assert.equal(state, "rejected");
  const why = gateway.lines.findLast(({ message }) => String(message).startsWith("Failed to reload"));
  assert.match(String(why?.message), /: \/idp itself gets its credentials by token exchange; give its host here/);
});

test("crossAppAccess: an assertion of the identity provider, then an access token for it, which is cached", async () => {
  await use({
    backendAuth: {
      crossAppAccess: {
        identityProvider: {
          host: hostOf(issuer),
          path: "/idp/token",
          clientAuth: { clientId: "a", clientSecret: "1" },
        },
        resourceAuthorizationServer: {
          host: hostOf(issuer),
          path: "/as/token",
          clientAuth: { clientId: "b", clientSecret: "2", method: "clientSecretPost" },
        },
        audience: "https://as.example",
        resources: ["https://api.example"],
        scopes: ["read", "write"],
        accessTokenScopes: ["read"],
      },
    },
  });
  assert.equal((await seen(bearer("id"))).authorization, "Bearer new-jag-id");
  assert.equal((await seen(bearer("id"))).authorization, "Bearer new-jag-id");
  assert.deepEqual(asked, [
    {
      path: "/idp/token",
      authorization: `Basic ${btoa("a:1")}`,
      form: [
        ["grant_type", EXCHANGE],
        ["subject_token", "id"],
        ["subject_token_type", ID_TOKEN],
        ["requested_token_type", ID_JAG],
        ["audience", "https://as.example"],
        ["scope", "read write"],
        ["resource", "https://api.example"],
      ],
    },
    {
      path: "/as/token",
      authorization: undefined,
      form: [
        ["grant_type", BEARER],
        ["assertion", "jag-id"],
        ["scope", "read"],
        ["client_id", "b"],
        ["client_secret", "2"],
      ],
    },
  ]);
  answer = (form) =>
    form.get("requested_token_type") === ID_JAG
      ? { body: { ...(issue(form).body as object), issued_token_type: ACCESS } }
      : issue(form);
  assert.equal((await call(bearer("other"))).status, 500, "a text that is not an assertion is not forwarded");
});

test("secrets of the policy are in no dump", async () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const signingKey = privateKey.export({ type: "pkcs8", format: "pem" });
  const keyed = { clientId: "gw", method: "privateKeyJwt", assertionAudience: "a", signingKey };
  const shared = { clientId: "gw", clientSecret: "s3cret-value" };
  const endpoint = (clientAuth: object) => ({ host: hostOf(issuer), clientAuth });
  for (const backendAuth of [
    { oauthTokenExchange: endpoint(shared) },
    { oauthTokenExchange: endpoint(keyed) },
    {
      crossAppAccess: {
        identityProvider: endpoint(shared),
        resourceAuthorizationServer: endpoint(keyed),
        audience: "a",
      },
    },
    { jwtSign: { signingKey } },
  ]) {
    await use({ backendAuth });
    const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
    assert.ok(dump.includes("backendAuth") && !dump.includes("s3cret-value") && !dump.includes("PRIVATE KEY"));
  }
});
