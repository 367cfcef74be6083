import assert from "node:assert/strict";
import { test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { seconds } from "../../base/dates.ts";
import { GatewayError } from "../../base/errors.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import type { Renewal } from "../shared-sessions/shared-sessions.ts";
import { SharedSessions } from "../shared-sessions/shared-sessions.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace } from "../testing/context.ts";
import { LoginFlow } from "./flow.ts";
import { oidc } from "./index.ts";
import type { Oidc } from "./schema.ts";

const KEY = new Uint8Array(32).fill(7);
const keys = await generateKeyPair("ES256");
const otherKeys = await generateKeyPair("ES256");
const CONFIG: Oidc = {
  issuer: "https://id.example.com",
  authorizationEndpoint: "https://id.example.com/auth",
  tokenEndpoint: "https://id.example.com/token",
  tokenEndpointAuth: "clientSecretBasic",
  callbackNamesIssuer: false,
  jwks: JSON.stringify({ keys: [{ ...(await exportJWK(keys.publicKey)), kid: "1", alg: "ES256" }] }),
  clientId: "gateway",
  clientSecret: "s3cret",
  redirectURI: "https://shop.example.com/login/done",
  scopes: [],
  logout: { path: "/logout", backChannelPath: "/logout/provider" },
};
const EVENTS = { "http://schemas.openid.net/event/backchannel-logout": {} };
const FORM = ["content-type", "application/x-www-form-urlencoded"];

/** What differs from a valid logout token. */
interface Changes {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly key?: typeof keys.privateKey;
}

let tokens = 0;

/** A logout token; claims that are undefined are left out. */
function tokenOf({ claims, header, key = keys.privateKey }: Changes = {}): Promise<string> {
  const now = seconds();
  const valid = { iss: CONFIG.issuer, aud: "gateway", iat: now, exp: now + 120, jti: `${++tokens}`, events: EVENTS };
  return new SignJWT({ ...valid, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "1", typ: "logout+jwt", ...header })
    .sign(key);
}

/** A gateway, whose sessions are its own. */
class Site {
  readonly shared = new SharedSessions();
  readonly flow = new LoginFlow(CONFIG, KEY, DEPS.fetch);
  readonly metrics = new Metrics();
  readonly #policy = creatorOf(oidc)(CONFIG, {
    ...DEPS,
    oidcCookieKey: KEY,
    oidcSessions: this.shared,
    oidcCounters: this.metrics,
  });

  /** The Cookie value of a login. */
  logIn(sub: string, sid?: string, more: { refresh?: string; expiresIn?: number } = {}): string {
    const claims = { sub, exp: seconds() + 600, ...(sid !== undefined && { sid }) };
    const session = this.flow.sessions.begin({ id: { token: "id", claims }, access: "a", ...more });
    const cookies = this.flow.sessions.issue(session, new Map());
    return cookies.map((cookie) => cookie.slice(0, cookie.indexOf(";"))).join("; ");
  }

  /** Which of the cookies still belong to a session. */
  async alive(cookies: Readonly<Record<string, string>>): Promise<string[]> {
    const alive: string[] = [];
    for (const [name, cookie] of Object.entries(cookies))
      if ((await this.send({ headers: ["cookie", cookie, "sec-fetch-dest", "empty"] })).status === 200)
        alive.push(name);
    return alive;
  }

  /** The response to a request, and what its trace says; 200 if it passes. */
  async send(request: Partial<HttpRequest>, body = "") {
    const trace = new RecordedTrace();
    try {
      const reply = await this.#policy.onRequest?.(contextOf(request, { trace, body }));
      return { status: reply?.status ?? 200, events: trace.events };
    } catch (error) {
      assert.ok(error instanceof GatewayError, String(error));
      return { status: error.status, events: trace.events, cause: (error.cause as Error | undefined)?.message ?? "" };
    }
  }

  post(body: string, headers = FORM) {
    return this.send({ method: "POST", path: "/logout/provider", headers: [...headers] }, body);
  }

  async logOut(changes: Changes) {
    return this.post(new URLSearchParams({ logout_token: await tokenOf(changes) }).toString());
  }
}

test("a logout token with a sid ends that session, one with a sub alone all sessions of the user", async () => {
  const site = new Site();
  const cookies = {
    one: site.logIn("jo", "s1"),
    two: site.logIn("jo", "s2"),
    // An id token without sid: the session may be any of the user's.
    unnamed: site.logIn("jo"),
    other: site.logIn("eve", "s3"),
  };
  const one = await site.logOut({ claims: { sub: "jo", sid: "s1" } });
  assert.equal(one.status, 200);
  assert.deepEqual(one.events, [{ kind: "oidc", details: { action: "backChannelLogout", ended: "session" } }]);
  assert.deepEqual(await site.alive(cookies), ["two", "other"]);
  const all = await site.logOut({ claims: { sub: "jo" } });
  assert.deepEqual(all.events, [{ kind: "oidc", details: { action: "backChannelLogout", ended: "user" } }]);
  assert.deepEqual(await site.alive(cookies), ["other"]);
  assert.equal((await site.logOut({ claims: { sid: "s3" } })).status, 200);
  assert.deepEqual(await site.alive(cookies), []);
});

test("a logout token that is used again ends no session that began since", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const site = new Site();
  const before = site.logIn("jo");
  const form = new URLSearchParams({ logout_token: await tokenOf({ claims: { sub: "jo" } }) }).toString();
  assert.equal((await site.post(form)).status, 200);
  t.mock.timers.tick(300_000);
  const since = site.logIn("jo");
  // Within the age and the tolerance of a token without `exp`.
  const old = new URLSearchParams({
    logout_token: await tokenOf({ claims: { sub: "jo", jti: `${tokens}`, exp: undefined, iat: seconds() - 300 } }),
  }).toString();
  const again = await site.post(old);
  assert.equal(again.status, 200);
  assert.deepEqual(again.events, [{ kind: "oidc", details: { action: "backChannelLogout", ended: "known" } }]);
  assert.deepEqual(await site.alive({ before, since }), ["since"]);
});

test("a token that is not a logout token of this provider for this client gets 400, and ends no session", async () => {
  const site = new Site();
  const cookies = { jo: site.logIn("jo", "s1") };
  const user = { sub: "jo", sid: "s1" };
  const now = seconds();
  const cases: Readonly<Record<string, readonly [Changes, RegExp]>> = {
    "another type": [{ claims: user, header: { typ: "at+jwt" } }, /its type is "at\+jwt"/],
    "a nonce, as id tokens have": [{ claims: { ...user, nonce: "n" } }, /it has a nonce/],
    "no events, as in id tokens": [{ claims: { ...user, events: undefined } }, /events/],
    "another event": [{ claims: { ...user, events: { "https://example.com/event": {} } } }, /not about a logout/],
    "an event that is no object": [
      { claims: { ...user, events: { "http://schemas.openid.net/event/backchannel-logout": "yes" } } },
      /not about a logout/,
    ],
    "issued long ago": [{ claims: { ...user, iat: now - 400, exp: now + 400 } }, /iat/],
    "issued in the future": [{ claims: { ...user, iat: now + 400 } }, /iat/],
    "no iat": [{ claims: { ...user, iat: undefined } }, /iat/],
    expired: [{ claims: { ...user, exp: now - 60 } }, /exp/],
    "no jti": [{ claims: { ...user, jti: undefined } }, /jti/],
    "a jti that is no string": [{ claims: { ...user, jti: 7 } }, /its jti is not a string/],
    "of another client": [{ claims: { ...user, aud: "other" } }, /aud/],
    "of another provider": [{ claims: { ...user, iss: "https://evil.example.com" } }, /iss/],
    "neither a user nor a session": [{}, /neither a user nor a session/],
    "a sid that is no string": [{ claims: { sub: "jo", sid: 1 } }, /its sid is not a string/],
    "a sub that is no string": [{ claims: { sub: ["jo"] } }, /its sub is not a string/],
    "signed by somebody else": [{ claims: user, key: otherKeys.privateKey }, /signature/],
    "with an unknown key": [{ claims: user, header: { kid: "2" } }, /key/],
  };
  for (const [name, [changes, why]] of Object.entries(cases)) {
    const { status, events, cause = "" } = await site.logOut(changes);
    assert.equal(status, 400, name);
    assert.match(cause, why, name);
    assert.deepEqual(
      events,
      [
        {
          kind: "oidc",
          details: { action: "backChannelLogout", result: "oidc failure: the logout token is invalid" },
          severity: "error",
        },
      ],
      name,
    );
  }
  assert.deepEqual(await site.alive(cookies), ["jo"]);
});

test("the log quotes nothing of a logout token that is not verified", async () => {
  const header = { alg: "ES256", kid: "1", crit: ["planted"], planted: true };
  const parts = [header, { sub: "jo" }].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  const { status, cause } = await new Site().post(`logout_token=${parts.join(".")}.AAAA`);
  assert.equal(status, 400);
  assert.match(cause ?? "", /^its header requires an extension/);
});

test("a request without exactly one logout token in a form gets 400", async () => {
  const site = new Site();
  const form = `logout_token=${await tokenOf({ claims: { sub: "jo" } })}`;
  for (const [body, headers, why] of [
    [form, ["content-type", "application/json"], "the request has no form"],
    [form, [], "the request has no form"],
    ["", FORM, "the form has no logout_token, or several"],
    [`${form}&${form}`, FORM, "the form has no logout_token, or several"],
    [`${form}&more=${"x".repeat(65_536)}`, FORM, "the form is too long"],
  ] as const) {
    const { status, cause } = await site.post(body, [...headers]);
    assert.deepEqual([status, cause], [400, why]);
  }
  assert.equal((await site.post(form)).status, 200);
});

test("without room for a revocation the provider gets 503, and may send its token again", async (t) => {
  const site = new Site();
  const cookies = { jo: site.logIn("jo", "s1") };
  const form = new URLSearchParams({ logout_token: await tokenOf({ claims: { sub: "jo", sid: "s1" } }) }).toString();
  const full = t.mock.method(site.shared, "revoke", () => false);
  const { status, events } = await site.post(form);
  assert.equal(status, 503);
  assert.deepEqual(events, [
    {
      kind: "oidc",
      details: { action: "logout", result: "oidc failure: too many logouts at a time" },
      severity: "error",
    },
  ]);
  full.mock.restore();
  assert.deepEqual((await site.post(form)).events, [
    { kind: "oidc", details: { action: "backChannelLogout", ended: "session" } },
  ]);
  assert.deepEqual(await site.alive(cookies), []);
});

test("a form of another site cannot log a user out, and the trace says so", async () => {
  const site = new Site();
  const cookie = site.logIn("jo");
  const headers = ["cookie", cookie, "sec-fetch-site", "cross-site"];
  const { status, events } = await site.send({ method: "POST", path: "/logout", headers });
  assert.equal(status, 403);
  assert.deepEqual(events, [
    {
      kind: "oidc",
      details: { action: "logout", result: "oidc failure: the logout comes from another site" },
      severity: "error",
    },
  ]);
  assert.deepEqual(await site.alive({ cookie }), ["cookie"]);
});

test("logouts of users are counted, with and without a session", async () => {
  const site = new Site();
  const own = ["sec-fetch-site", "same-origin"];
  for (const headers of [[...own, "cookie", site.logIn("jo")], own])
    await site.send({ path: "/logout", search: "", headers });
  const counted = site.metrics.snapshot().oidc_logouts_total ?? [];
  assert.deepEqual(
    counted.map(({ labels, value }) => [...labels, value]),
    [
      [CONFIG.issuer, "user", "ended", 1],
      [CONFIG.issuer, "user", "missing", 1],
    ],
  );
});

test("a logout that comes during a refresh ends the session, whatever becomes of the refresh", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const site = new Site();
  const renewal: { end?: (renewal: Renewal) => void } = {};
  t.mock.method(site.shared, "once", () => new Promise<Renewal>((resolve) => Object.assign(renewal, { end: resolve })));
  for (const outcome of [
    { state: "refused", why: "the token endpoint said invalid_grant" },
    { state: "failed", why: "away", retryAt: 0 },
    { state: "renewed", session: undefined },
  ] as const) {
    const cookie = site.logIn("jo", "s1", { refresh: "r", expiresIn: 10 });
    const found = site.flow.sessions.read(new Map([cookie.split("=", 2) as [string, string]]));
    assert.ok(found?.state === "valid");
    // Its tokens expire soon, and are still valid.
    t.mock.timers.tick(9000);
    const waiting = site.send({ headers: ["cookie", cookie, "sec-fetch-dest", "empty"] });
    assert.equal((await site.logOut({ claims: { sid: "s1" } })).status, 200);
    renewal.end?.(outcome.state === "renewed" ? { state: "renewed", session: found.session } : outcome);
    assert.equal((await waiting).status, 401, outcome.state);
  }
});
