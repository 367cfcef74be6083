import assert from "node:assert/strict";
import { before, test } from "node:test";
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, SignJWT } from "jose";
import type { GatewayError } from "../../base/errors.ts";
import type { LocalReply } from "../../http/message/message.ts";
import { SharedSessions } from "../shared-sessions/shared-sessions.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace } from "../testing/context.ts";
import { LoginFlow } from "./flow.ts";
import { oidc } from "./index.ts";
import type { Oidc } from "./schema.ts";

const create = creatorOf(oidc);
const KEY = new Uint8Array(32).fill(7);
const ISSUER = "https://id.example.com";
const EVENT = "http://schemas.openid.net/event/backchannel-logout";
const FORM = ["content-type", "application/x-www-form-urlencoded"];

let keys: GenerateKeyPairResult;
let config: Oidc;
before(async () => {
  keys = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: "one", alg: "ES256" };
  config = {
    issuer: ISSUER,
    authorizationEndpoint: `${ISSUER}/auth`,
    tokenEndpoint: `${ISSUER}/token`,
    tokenEndpointAuth: "clientSecretBasic",
    callbackNamesIssuer: false,
    jwks: JSON.stringify({ keys: [jwk] }),
    clientId: "gateway",
    clientSecret: "s3cret",
    redirectURI: "https://shop.example.com/login/done",
    scopes: ["openid"],
    logout: { path: "/logout", backChannelPath: "/logout/provider" },
  };
});

const now = (): number => Math.floor(Date.now() / 1000);

/** What is different from a good logout token of the session `s1` of the user `jo`; undefined leaves a claim out. */
interface TokenChanges {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly typ?: string;
  readonly key?: GenerateKeyPairResult["privateKey"];
}

function logoutToken({ claims = {}, typ = "logout+jwt", key = keys.privateKey }: TokenChanges = {}): Promise<string> {
  const all = { iss: ISSUER, aud: "gateway", iat: now(), jti: "t1", sub: "jo", sid: "s1", events: { [EVENT]: {} } };
  const sent = Object.entries({ ...all, ...claims }).filter(([, value]) => value !== undefined);
  return new SignJWT(Object.fromEntries(sent)).setProtectedHeader({ alg: "ES256", kid: "one", typ }).sign(key);
}

/** A gateway, and the cookies of browsers that have logged in at it. */
function gateway(shared = new SharedSessions()) {
  const policy = create(config, { ...DEPS, oidcCookieKey: KEY, oidcSessions: shared });
  return {
    /** The response to a logout token, and what the trace says about it. */
    async tell(token: string, headers = FORM, body = `logout_token=${encodeURIComponent(token)}`) {
      const trace = new RecordedTrace();
      const request = { method: "POST", path: "/logout/provider", search: "", headers };
      try {
        const reply = (await policy.onRequest?.(contextOf(request, { trace, body }))) as LocalReply;
        return { status: reply.status, events: trace.events };
      } catch (error) {
        return { status: (error as GatewayError).status, events: trace.events };
      }
    },
    /** Whether a session, of a user and with a `sid`, still passes. */
    passes(cookie: string): boolean {
      const headers = ["cookie", cookie, "sec-fetch-mode", "cors"];
      try {
        return policy.onRequest?.(contextOf({ headers })) === undefined;
      } catch {
        return false;
      }
    },
  };
}

function loggedIn(sub: string, sid?: string): string {
  const { sessions } = new LoginFlow(config, KEY, DEPS.fetch);
  const claims = { sub, exp: now() + 600, ...(sid !== undefined && { sid }) };
  const cookies = sessions.issue(
    sessions.begin({ id: { token: "id", claims }, access: "a", expiresIn: 600 }),
    new Map(),
  );
  return cookies.map((cookie) => cookie.slice(0, cookie.indexOf(";"))).join("; ");
}

test("a logout token ends the session with its sid, and without one all sessions of its user", async () => {
  const { tell, passes } = gateway();
  const [one, two, other] = [loggedIn("jo", "s1"), loggedIn("jo", "s2"), loggedIn("ann", "s3")];
  for (const cookie of [one, two, other]) assert.ok(passes(cookie));
  const { status, events } = await tell(await logoutToken());
  assert.equal(status, 200);
  assert.deepEqual(events, [{ kind: "oidc", details: { action: "backChannelLogout", ended: "session" } }]);
  assert.deepEqual([one, two, other].map(passes), [false, true, true]);
  assert.equal((await tell(await logoutToken({ claims: { sid: undefined, jti: "t2" } }))).status, 200);
  assert.deepEqual([one, two, other].map(passes), [false, false, true]);
});

test("a logout token counts once, so a copy of it does not end a later session", async () => {
  const { tell } = gateway();
  const token = await logoutToken();
  await tell(token);
  const { status, events } = await tell(token);
  assert.equal(status, 200);
  assert.deepEqual(events, [{ kind: "oidc", details: { action: "backChannelLogout", ended: "known" } }]);
});

test("a logout token that is not exactly one of the provider for this client gets 400 and ends nothing", async () => {
  const stranger = await generateKeyPair("ES256");
  const wrong: Readonly<Record<string, TokenChanges>> = {
    "another key": { key: stranger.privateKey },
    "another issuer": { claims: { iss: "https://evil.example.com" } },
    "another client": { claims: { aud: "other" } },
    "too old": { claims: { iat: now() - 400 } },
    "without a time": { claims: { iat: undefined } },
    "without a jti": { claims: { jti: undefined } },
    "without events": { claims: { events: undefined } },
    "another event": { claims: { events: { "http://example.com/other": {} } } },
    "an event that is not an object": { claims: { events: { [EVENT]: true } } },
    "an id token": { typ: "at+jwt" },
    "with a nonce": { claims: { nonce: "n" } },
    "about nobody": { claims: { sub: undefined, sid: undefined } },
    "a sid that is a number": { claims: { sid: 7 } },
    "a sub that is a number": { claims: { sub: 7, sid: undefined } },
  };
  const { tell, passes } = gateway();
  const cookie = loggedIn("jo", "s1");
  for (const [name, changes] of Object.entries(wrong)) {
    const { status, events } = await tell(await logoutToken(changes));
    assert.equal(status, 400, name);
    assert.match(JSON.stringify(events), /^\[[^[]*"action":"backChannelLogout"[^[]*\]$/, name);
    assert.ok(passes(cookie), name);
  }
  const token = await logoutToken();
  for (const [headers, body] of [
    [["content-type", "application/json"], `logout_token=${token}`],
    [FORM, `logout_token=${token}&logout_token=${token}`],
    [FORM, `token=${token}`],
    [FORM, `logout_token=${token}&pad=${"x".repeat(64 * 1024)}`],
  ] as const)
    assert.equal((await tell(token, [...headers], body)).status, 400, body.slice(0, 40));
  assert.ok(passes(cookie));
});

test("without room for another revocation, the provider gets 503 and may try again", async (t) => {
  const shared = new SharedSessions();
  t.mock.method(shared, "revoke", () => false);
  assert.equal((await gateway(shared).tell(await logoutToken())).status, 503);
});
