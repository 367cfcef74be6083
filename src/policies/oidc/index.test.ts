import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../base/durations.ts";
import type { GatewayError } from "../../base/errors.ts";
import { getHeader, type HttpRequest, type LocalReply } from "../../http/message/message.ts";
import { SharedSessions } from "../shared-sessions/shared-sessions.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace, replyOf } from "../testing/context.ts";
import { parseCookieKey } from "./cookie-key.ts";
import { LoginFlow } from "./flow.ts";
import { oidc } from "./index.ts";
import type { Oidc } from "./schema.ts";

const create = creatorOf(oidc);

const KEY = new Uint8Array(32).fill(7);
const CONFIG: Oidc = {
  issuer: "https://id.example.com",
  authorizationEndpoint: "https://id.example.com/auth?tenant=a",
  tokenEndpoint: "https://id.example.com/token",
  tokenEndpointAuth: "clientSecretBasic",
  callbackNamesIssuer: false,
  jwks: '{"keys":[]}',
  clientId: "gateway",
  clientSecret: "s3cret",
  redirectURI: "https://shop.example.com/login/done",
  scopes: ["email", "openid"],
};
const CLAIMS = { sub: "jo", exp: Math.floor(Date.now() / 1000) + 600 };

function policyOf(changes: Partial<Oidc> = {}) {
  return create({ ...CONFIG, ...changes }, { ...DEPS, oidcCookieKey: KEY });
}

/** The Cookie value of a logged-in user. */
function session(changes: Partial<Oidc> = {}, claims = CLAIMS): string {
  const { sessions } = new LoginFlow({ ...CONFIG, ...changes }, KEY, DEPS.fetch);
  const tokens = { id: { token: "id", claims }, access: "access", expiresIn: 600 };
  return cookieHeader(sessions.issue(sessions.begin(tokens), new Map()));
}

/** What a browser sends after these Set-Cookie values. */
function cookieHeader(cookies: readonly string[]): string {
  return cookies.map((cookie) => cookie.slice(0, cookie.indexOf(";"))).join("; ");
}

function setCookies({ headers }: LocalReply): string[] {
  return headers.filter((_, i) => i % 2 === 1 && headers[i - 1] === "set-cookie");
}

async function rejectionOf(request: Partial<HttpRequest>): Promise<GatewayError> {
  try {
    await policyOf().onRequest?.(contextOf(request));
  } catch (error) {
    return error as GatewayError;
  }
  throw new Error("the request was not rejected");
}

test("users who are not logged in are sent to the provider with PKCE, state and nonce", () => {
  const reply = replyOf(policyOf(), contextOf());
  assert.equal(reply.status, 302);
  const url = new URL(getHeader(reply.headers, "location") ?? "");
  assert.equal(url.origin + url.pathname, "https://id.example.com/auth");
  const { state, nonce, code_challenge, ...others } = Object.fromEntries(url.searchParams);
  assert.deepEqual(others, {
    tenant: "a",
    response_type: "code",
    client_id: "gateway",
    redirect_uri: "https://shop.example.com/login/done",
    scope: "openid email",
    code_challenge_method: "S256",
  });
  for (const random of [state, nonce, code_challenge]) assert.match(random ?? "", /^[\w-]{43}$/);
  assert.equal(getHeader(reply.headers, "cache-control"), "no-store");
  const [cookie = "", ...more] = setCookies(reply);
  assert.equal(more.length, 0);
  assert.match(cookie, /^__Host-tracegate_oidc_t_[\w-]+=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=300$/);
});

test("a session passes with its claims as jwt; no backend sees its cookie", () => {
  const trace = new RecordedTrace();
  const context = contextOf({ headers: ["cookie", `theme=dark; ${session()}`] }, { trace });
  assert.equal(policyOf().onRequest?.(context), undefined);
  assert.deepEqual(context.requestMetadata.jwt, CLAIMS);
  assert.deepEqual(context.request.headers, ["cookie", "theme=dark"]);
  const expires = new Date(CLAIMS.exp * 1000).toISOString();
  assert.deepEqual(trace.events, [{ kind: "oidc", details: { action: "session", expires } }]);
});

test("a policy of the route finds the cookies that one of the gateway removed from the request", () => {
  const context = contextOf({ headers: ["cookie", `${session()}; ${session({ clientId: "other" })}`] });
  assert.equal(policyOf().onRequest?.(context), undefined);
  assert.equal(policyOf({ clientId: "other" }).onRequest?.(context), undefined);
  assert.deepEqual(context.request.headers, []);
});

test("an explanation does not claim that nobody logged out, and knows that tokens have expired", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const changes = { accessTokenHeader: "x-token", session: { lifetime: ms(3_600_000) } };
  const cookie = session(changes);
  const policy = create({ ...CONFIG, ...changes }, { ...DEPS, oidcCookieKey: KEY, oidcSessions: undefined });
  const trace = new RecordedTrace();
  const report = t.mock.method(trace, "report");
  assert.equal(policy.onRequest?.(contextOf({ headers: ["cookie", cookie] }, { trace })), undefined);
  assert.equal(report.mock.calls[0]?.arguments[1].code, "rehearsed");
  t.mock.timers.tick(601_000);
  const reply = replyOf(policy, contextOf({ headers: ["cookie", cookie] }, { trace }));
  assert.equal(reply.status, 302);
  assert.deepEqual(trace.events.at(-1), { kind: "oidc", details: { action: "login", session: "lapsed" } });
});

test("while one request refreshes the tokens, others pass with those that are still valid", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const { sessions } = new LoginFlow(CONFIG, KEY, DEPS.fetch);
  const tokens = { id: { token: "id", claims: CLAIMS }, access: "access", refresh: "r", expiresIn: 600 };
  const headers = ["cookie", cookieHeader(sessions.issue(sessions.begin(tokens), new Map()))];
  t.mock.timers.tick(599_000);
  const unanswered = () => new Promise<never>(() => {});
  const deps = { ...DEPS, oidcCookieKey: KEY, oidcSessions: new SharedSessions(), fetch: unanswered };
  const policy = create(CONFIG, deps);
  assert.ok(policy.onRequest?.(contextOf({ headers: [...headers] })) instanceof Promise);
  assert.equal(policy.onRequest?.(contextOf({ headers: [...headers] })), undefined);
});

test("without the documents of the provider, its callbacks and logouts get 503", () => {
  const policy = policyOf({ incomplete: true, logout: { path: "/logout", backChannelPath: "/logout/provider" } });
  for (const request of [
    { path: "/login/done", search: "?state=x&code=y" },
    { method: "POST", path: "/logout/provider", search: "" },
  ])
    assert.throws(() => policy.onRequest?.(contextOf(request)), { code: "TG_DOCUMENT_MISSING", status: 503 });
});

test("a session ends with the id token", () => {
  const expired = session({}, { sub: "jo", exp: Math.floor(Date.now() / 1000) });
  const trace = new RecordedTrace();
  const reply = replyOf(policyOf(), contextOf({ headers: ["cookie", expired] }, { trace }));
  assert.equal(reply.status, 302);
  assert.deepEqual(trace.events, [{ kind: "oidc", details: { action: "login", session: "expired" } }]);
});

test("a session with one provider or client is not valid with another", () => {
  for (const changes of [
    { issuer: "https://evil.example.com" },
    { clientId: "other" },
    { redirectURI: "https://x/" },
  ]) {
    const reply = replyOf(policyOf(), contextOf({ headers: ["cookie", session(changes)] }));
    assert.equal(reply.status, 302, JSON.stringify(changes));
  }
});

test("a preflight without a login passes the gateway's policy if cors of the route responds, but not the route's", async () => {
  const headers = ["origin", "https://a.example.com", "access-control-request-method", "PUT"];
  const atGateway = create(CONFIG, { ...DEPS, oidcCookieKey: KEY, phase: "gateway" });
  const trace = new RecordedTrace();
  const context = contextOf({ method: "OPTIONS", headers: [...headers] }, { trace });
  assert.equal(atGateway.onRequest?.(context), undefined);
  assert.equal(context.requestMetadata.unlessCors?.error.status, 401);
  assert.deepEqual(trace.events, [{ kind: "oidc", reason: "a CORS preflight carries no cookies" }]);
  assert.equal((await rejectionOf({ method: "OPTIONS", headers: [...headers] })).status, 401);
  assert.equal((await rejectionOf({ method: "OPTIONS" })).status, 401);

  const known = contextOf({ method: "OPTIONS", headers: [...headers, "cookie", session()] });
  assert.equal(atGateway.onRequest?.(known), undefined);
  assert.deepEqual(known.request.headers, headers);
  assert.deepEqual([known.requestMetadata.jwt, known.requestMetadata.unlessCors], [CLAIMS, undefined]);
});

test("requests that cannot show a login page are not sent to one", async () => {
  for (const headers of [
    ["sec-fetch-dest", "empty"],
    ["sec-fetch-dest", "image"],
    ["content-type", "application/grpc+proto"],
  ]) {
    const error = await rejectionOf({ headers });
    assert.equal(error.status, 401);
    assert.equal(error.message, "oidc failure: authentication required");
  }
  assert.equal(replyOf(policyOf(), contextOf({ headers: ["sec-fetch-dest", "document"] })).status, 302);
});

test("callbacks get 400 if they do not belong to a login of this browser", async () => {
  const callback = (search: string, headers: string[] = []) => ({ path: "/login/done", search, headers });
  const state = "s".repeat(43);
  const of = async (request: Partial<HttpRequest>) => {
    const { status, message } = await rejectionOf(request);
    return `${status} ${message}`;
  };
  assert.equal(
    await of(callback(`?code=x&state=${state}`)),
    "400 oidc failure: no login is in progress: the browser sent no cookie of one",
  );
  assert.equal(
    await of(callback(`?error=access_denied&state=${state}`)),
    "400 oidc failure: no login is in progress: the browser sent no cookie of one",
  );
  assert.equal(await of(callback("?code=x&state=short")), "400 oidc failure: invalid callback");
  const forged = ["cookie", `__Host-tracegate_oidc_t_${idOf()}_${"s".repeat(16)}=forged`];
  assert.equal(
    await of(callback(`?code=x&state=${state}`, forged)),
    "400 oidc failure: the cookie of the login has expired or is not valid",
  );
});

/** The id in the names of this policy's cookies. */
function idOf(): string {
  return /tracegate_oidc_s_(\w+)/.exec(session())?.[1] ?? "";
}

test("a request that only looks like a callback begins a login", () => {
  const state = "s".repeat(43);
  for (const request of [
    { path: "/login/done", search: "" },
    { path: "/login/done", search: `?state=${state}` },
    { path: "/login/done", search: "?code=x" },
    { path: "/login/done/", search: `?code=x&state=${state}` },
    { path: "/login/done", search: `?code=x&state=${state}`, method: "POST" },
  ])
    assert.equal(replyOf(policyOf(), contextOf(request)).status, 302, JSON.stringify(request));
});

test("the secret is not shown", () => {
  const redacted = JSON.stringify(oidc.traceView(CONFIG, DEPS.hidden));
  assert.doesNotMatch(redacted, /s3cret/);
  assert.match(redacted, /"clientId":"gateway"/);
});

test("the policy requires a key for the cookies", () => {
  assert.throws(
    () => create(CONFIG, DEPS),
    /^Error: oidc: OIDC_COOKIE_SECRET is required when oidc is configured; set/,
  );
  assert.equal(parseCookieKey("00ff".repeat(16))?.length, 32);
  for (const text of ["", "00ff", "00ff".repeat(17), `${"00ff".repeat(15)}xxxx`, "a passphrase"])
    assert.equal(parseCookieKey(text), undefined, text);
});
