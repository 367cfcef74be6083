import assert from "node:assert/strict";
import { test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { GatewayError } from "../../base/errors.ts";
import { getHeader, type LocalReply } from "../../http/message/message.ts";
import type { CompiledPolicy } from "../compile.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import type { PolicyContext } from "../contract/types.ts";
import { LoginFlow } from "../oidc/flow.ts";
import type { Oidc } from "../oidc/schema.ts";
import type { Tokens } from "../oidc/session.ts";
import { contextOf, creatorOf, DEPS, loggedText, RecordedTrace, type TestContext } from "../testing/context.ts";
import { satisfy } from "./index.ts";
import { type Satisfy, schema } from "./schema.ts";

const create = creatorOf(satisfy);
const KEY = new Uint8Array(32).fill(7);

const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
const token = await new SignJWT({ iss: "https://i.example", sub: "alice" })
  .setProtectedHeader({ alg: "ES256", kid: "k" })
  .setExpirationTime("5m")
  .sign(privateKey);

const jwtAuth = { issuer: "https://i.example", jwks };
const apiKey = { keys: [{ key: "right", metadata: { team: "a" } }], location: { header: { name: "x-api-key" } } };
// htpasswd -nbs jo pass
const basicAuth = { htpasswd: "jo:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=" };
const ipAccess = { allow: ["10.0.0.0/8"] };
const oidc = {
  issuer: "https://id.example",
  authorizationEndpoint: "https://id.example/auth",
  tokenEndpoint: "https://id.example/token",
  tokenEndpointAuth: "clientSecretBasic",
  callbackNamesIssuer: false,
  jwks: '{"keys":[]}',
  clientId: "gateway",
  clientSecret: "s3cret",
  redirectURI: "https://shop.example/done",
  scopes: ["openid"],
} as const;

/** The policy with the alternatives of one level or several. Nothing is in files, so what is parsed is what runs. */
function policy(...levels: readonly (readonly object[])[]): CompiledPolicy {
  const config = levels.map((any) => ({
    any: any.map((each) => ("oidc" in each ? each : schema.parse({ any: [each] }).any[0])),
  }));
  return create(config as Satisfy, { ...DEPS, oidcCookieKey: KEY });
}

const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
const of = (...headers: string[]): TestContext => contextOf({ headers });

/** The cookie of a session with the access token `given`. */
function sessionCookie(config: Oidc, tokens: Pick<Tokens, "refresh" | "expiresIn"> = { expiresIn: 600 }): string {
  const { sessions } = new LoginFlow(config, KEY, DEPS.fetch);
  const claims = { sub: "jo", exp: Math.floor(Date.now() / 1000) + 600 };
  const [set = ""] = sessions.issue(
    sessions.begin({ id: { token: "id", claims }, access: "given", ...tokens }),
    new Map(),
  );
  return set.slice(0, set.indexOf(";"));
}

async function outcome(each: CompiledPolicy, context: PolicyContext): Promise<LocalReply | GatewayError | undefined> {
  try {
    return await each.onRequest?.(context);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return error;
  }
}

/** Who the client is if the request passes; else the status. */
async function client(each: CompiledPolicy, context: TestContext): Promise<unknown> {
  const ended = await outcome(each, context);
  if (ended !== undefined) return ended.status;
  const { jwt, apiKey: key, basicAuth: user } = context.requestMetadata;
  return [jwt && "jwt", key && "apiKey", user && "basicAuth"].filter(Boolean).join(" ") || "nobody";
}

test("one valid credential is enough, whichever it is", async () => {
  const each = policy([{ apiKey }, { jwtAuth }, { basicAuth }, { ipAccess }]);
  assert.equal(await client(each, of("x-api-key", "right")), "apiKey");
  assert.equal(await client(each, of("authorization", `Bearer ${token}`)), "jwt");
  assert.equal(await client(each, of("authorization", basic("jo:pass"))), "basicAuth");
  assert.equal(await client(each, contextOf({}, { source: { address: "10.1.2.3" } })), "nobody");
  assert.equal(await client(each, of()), 401);
});

test("the first satisfied alternative says who the client is, and later ones are not tried", async () => {
  const both = ["x-api-key", "right", "authorization", `Bearer ${token}`];
  assert.equal(await client(policy([{ apiKey }, { jwtAuth }]), of(...both)), "apiKey");
  assert.equal(await client(policy([{ jwtAuth }, { apiKey }]), of(...both)), "jwt");
  const trace = new RecordedTrace();
  await outcome(policy([{ apiKey }, { jwtAuth }]), contextOf({ headers: both }, { trace }));
  assert.deepEqual(trace.events, [
    { kind: "api_key", details: { valid: true }, scope: "satisfy" },
    { kind: "satisfy", details: { satisfied: true, by: "apiKey" } },
  ]);
});

test("a wrong credential beside a valid one neither helps nor harms, and reaches no backend", async () => {
  const each = policy([{ jwtAuth }, { apiKey }, { basicAuth }]);
  const context = of("authorization", "Bearer forged", "x-api-key", "right", "x", "y");
  assert.equal(await client(each, context), "apiKey");
  assert.deepEqual(context.request.headers, ["x", "y"]);
  const spaced = of("authorization", "Bearer\tforged", "authorization", "bearer  forged", "x-api-key", "right");
  assert.equal(await client(each, spaced), "apiKey");
  assert.deepEqual(spaced.request.headers, []);
});

test("credentials of other schemes, which may be for the backend, stay", async () => {
  const context = contextOf({ headers: ["authorization", "Bearer app"] }, { source: { address: "10.1.2.3" } });
  assert.equal(await client(policy([{ basicAuth }, { ipAccess }]), context), "nobody");
  assert.deepEqual(context.request.headers, ["authorization", "Bearer app"]);
});

test("401 has the challenges of all alternatives, each once; with addresses alone it is 403", async () => {
  const none = await outcome(policy([{ apiKey }, { jwtAuth }, { jwtAuth }, { basicAuth }, { ipAccess }]), of());
  assert.ok(none instanceof GatewayError);
  assert.deepEqual(
    [none.code, none.status, none.headers],
    [
      "TG_SATISFY",
      401,
      [
        ["www-authenticate", 'ApiKey realm="Restricted"'],
        ["www-authenticate", 'Bearer realm="Restricted"'],
        ["www-authenticate", 'Basic realm="Restricted"'],
      ].flat(),
    ],
  );
  assert.match(
    loggedText(none),
    /no alternative is satisfied: apiKey: no API key in the header x-api-key; jwtAuth: no t/,
  );
  const wrong = await outcome(policy([{ jwtAuth }, { ipAccess }]), of("authorization", "Bearer forged"));
  assert.deepEqual((wrong as GatewayError).headers, [
    "www-authenticate",
    'Bearer realm="Restricted", error="invalid_token"',
  ]);
  assert.equal(await client(policy([{ ipAccess }, { ipAccess: { allow: ["192.168.0.0/16"] } }]), of()), 403);
  const proxy = { basicAuth: { ...basicAuth, authorizationLocation: { header: { name: "proxy-authorization" } } } };
  assert.equal(await client(policy([proxy, { ipAccess }]), of()), 407);
  assert.equal(await client(policy([proxy, { apiKey }]), of()), 401);
});

test("a credential that cannot be checked yet gets 503, unless another one is valid", async () => {
  const { jwks: _unfetched, ...jwt } = schema.parse({ any: [{ jwtAuth }] }).any[0]?.jwtAuth ?? {};
  const any = [{ jwtAuth: jwt }, ...schema.parse({ any: [{ apiKey }] }).any];
  const each = create([{ any }] as Satisfy, DEPS);
  assert.equal(await client(each, of("authorization", `Bearer ${token}`)), 503);
  assert.equal(await client(each, of("authorization", `Bearer ${token}`, "x-api-key", "right")), "apiKey");
  assert.equal(await client(each, of()), 401);
});

test("only a browser that opens a page and has sent nothing wrong is led to the login", async () => {
  const each = policy([{ oidc }, { apiKey }, { basicAuth }]);
  const page = await outcome(each, of("sec-fetch-dest", "document"));
  assert.ok(page !== undefined && !(page instanceof GatewayError));
  assert.match(getHeader(page.headers, "location") ?? "", /^https:\/\/id\.example\/auth\?/);
  assert.equal(await client(each, of("accept", "text/html,*/*")), 302);
  for (const headers of [
    [],
    ["accept", "*/*"],
    ["sec-fetch-dest", "empty", "accept", "text/html"],
    ["sec-fetch-dest", "document", "authorization", basic("jo:wrong")],
    ["sec-fetch-dest", "document", "x-api-key", "wrong"],
  ])
    assert.equal(await client(each, of(...headers)), 401, headers.join());
});

test("a session passes; its cookie is removed even if another credential lets the request pass", async () => {
  const cookie = sessionCookie(oidc);
  const session = of("cookie", cookie);
  assert.equal(await client(policy([{ apiKey }, { oidc }]), session), "jwt");
  assert.deepEqual(session.request.headers, []);
  const both = of("cookie", `${cookie}; a=1`, "x-api-key", "right");
  assert.equal(await client(policy([{ apiKey }, { oidc }]), both), "apiKey");
  assert.deepEqual(both.request.headers, ["cookie", "a=1"]);
});

test("a session whose provider cannot be asked may be valid: 503, unless another credential is", async () => {
  const any = [{ oidc }, ...schema.parse({ any: [{ apiKey }] }).any];
  const fetch = () => Promise.reject(new Error("unreachable"));
  const each = create([{ any }] as Satisfy, { ...DEPS, oidcCookieKey: KEY, fetch });
  const cookie = sessionCookie(oidc, { refresh: "r", expiresIn: 0 });
  assert.equal(await client(each, of("cookie", cookie, "accept", "text/html")), 503);
  assert.equal(await client(each, of("cookie", cookie, "x-api-key", "right")), "apiKey");
});

test("the access token of a session is not taken for a credential of the client", async () => {
  const config = { ...oidc, accessTokenHeader: "authorization" };
  const each = policy([{ oidc: config }, { jwtAuth }]);
  const session = of("cookie", sessionCookie(config), "authorization", "Bearer forged");
  assert.equal(await client(each, session), "jwt");
  assert.deepEqual(session.request.headers, ["authorization", "Bearer given"]);
  const other = of("authorization", `Bearer ${token}`);
  assert.equal(await client(each, other), "jwt");
  assert.deepEqual(other.request.headers, []);
});

test("clients cannot send the access token of a session themselves, whoever they are", async () => {
  const each = policy([{ apiKey }, { oidc: { ...oidc, accessTokenHeader: "X-Token" } }]);
  const context = of("x-api-key", "right", "x-token", "forged");
  assert.equal(await client(each, context), "apiKey");
  assert.deepEqual(context.request.headers, []);
});

test("a preflight, which carries no credentials, is left to cors of the route, but only in the gateway phase", async () => {
  const any = schema.parse({ any: [{ apiKey }, { jwtAuth }] }).any;
  const preflight = {
    method: "OPTIONS",
    headers: ["origin", "https://a.example", "access-control-request-method", "GET"],
  };
  const context = contextOf(preflight);
  assert.equal(await outcome(create([{ any }] as Satisfy, { ...DEPS, phase: "gateway" }), context), undefined);
  const { policy: by, error } = context.requestMetadata.unlessCors ?? {};
  assert.deepEqual([by, error?.code], ["satisfy", "TG_SATISFY"]);
  assert.equal(await client(create([{ any }] as Satisfy, DEPS), contextOf(preflight)), 401);
  const other = contextOf({ ...preflight, method: "GET" });
  assert.equal(await client(create([{ any }] as Satisfy, { ...DEPS, phase: "gateway" }), other), 401);
});

test("callbacks and logouts belong to oidc, whatever else would let the request pass", async () => {
  const each = policy([{ ipAccess }, { oidc: { ...oidc, logout: { path: "/logout" } } }]);
  const source = { address: "10.1.2.3" };
  const logout = { path: "/logout", search: "", headers: ["sec-fetch-site", "same-origin"] };
  const reply = await outcome(each, contextOf(logout, { source }));
  assert.equal(reply?.status, 200);
  const callback = { path: "/done", search: "?state=x&code=y" };
  assert.equal((await outcome(each, contextOf(callback, { source })))?.status, 400);
});

test("several levels must all be satisfied, and one credential may satisfy more than one", async () => {
  const each = policy([{ jwtAuth }, { apiKey }], [{ apiKey }, { basicAuth }]);
  assert.equal(await client(each, of("x-api-key", "right")), "apiKey");
  assert.equal(await client(each, of("authorization", `Bearer ${token}`)), 401);
  assert.equal(await client(each, of("authorization", basic("jo:pass"))), 401);
  assert.equal(await client(each, of("authorization", `Bearer ${token}`, "x-api-key", "right")), "jwt apiKey");
  const levels = [[{ any: [{ apiKey }] }], [{ any: [{ basicAuth }] }]] as unknown as [Satisfy, Satisfy];
  assert.deepEqual(satisfy.merge(...levels), levels.flat());
});

test("a rehearsal chooses the credential of each alternative by itself", async () => {
  const any = schema.parse({ any: [{ basicAuth }, { apiKey }] }).any;
  const rehearsed = (deps: PolicyDeps, kind: string): PolicyDeps => ({
    ...deps,
    assumedCredential: () => (kind === "apiKey" ? { team: "b" } : undefined),
  });
  assert.equal(await client(create([{ any }] as Satisfy, { ...DEPS, rehearsed }), of()), "apiKey");
});

test("an error that is not about a credential ends the request", async () => {
  const failing = { apiKey: { ...apiKey, location: { expression: "string(1 / (request.path.size() - 10))" } } };
  const ended = await outcome(policy([failing, { ipAccess }]), contextOf({ path: "/shop/cart" }));
  assert.ok(ended instanceof GatewayError);
  assert.equal(ended.code, "TG_INVALID_REQUEST");
});

test("the policy is shown as it is written, without secrets", () => {
  const config = [schema.parse({ any: [{ apiKey }, { ipAccess }] })] as unknown as Satisfy;
  const shown = JSON.stringify(satisfy.redact(config, DEPS.hidden));
  assert.match(shown, /^\{"any":\[\{"apiKey":\{"keys":\[\{"keyHash":"<redacted>"/);
  assert.ok(!shown.includes("right"));
  assert.match(JSON.stringify(satisfy.redact([...config, ...config], DEPS.hidden)), /^\[\{"any"/);
});
