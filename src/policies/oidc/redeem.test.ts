import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import type { GatewayError } from "../../base/errors.ts";
import { getHeader, type LocalReply } from "../../http/message/message.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace, replyOf, type TestContext } from "../testing/context.ts";
import { LoginFlow } from "./flow.ts";
import { oidc } from "./index.ts";
import type { Oidc } from "./schema.ts";

const create = creatorOf(oidc);

const SECRET = "s3cret value";
const keys = await generateKeyPair("ES256", { extractable: true });
const otherKeys = await generateKeyPair("ES256");
const JWKS = JSON.stringify({ keys: [{ ...(await exportJWK(keys.publicKey)), kid: "1", alg: "ES256" }] });

/** What the token endpoint does with the next request. */
let answer: (response: ServerResponse, request: IncomingMessage) => void | Promise<void> = () => {};
const server = createServer((request, response) => void answer(response, request));
let issuer = "";
let target = "";

before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  target = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  issuer = `http://${target}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

function configOf(changes: Partial<Oidc> = {}): Oidc {
  return {
    issuer,
    authorizationEndpoint: `${issuer}/auth`,
    tokenEndpoint: `${issuer}/token`,
    tokenEndpointAuth: "clientSecretBasic",
    callbackNamesIssuer: false,
    jwks: JWKS,
    clientId: "gateway",
    clientSecret: SECRET,
    redirectURI: "http://example.com/done",
    scopes: [],
    ...changes,
  };
}

/** A browser on its way back from the provider. */
class Login {
  readonly nonce: string;
  readonly context: TestContext;
  readonly trace = new RecordedTrace();
  readonly #policy: ReturnType<typeof create>;

  constructor(more = "", changes: Partial<Oidc> = {}, deps: Partial<PolicyDeps> = {}) {
    this.#policy = create(configOf(changes), { ...DEPS, oidcCookieKey: new Uint8Array(32).fill(1), ...deps });
    const { headers } = replyOf(this.#policy, contextOf());
    const sent = new URL(getHeader(headers, "location") ?? "").searchParams;
    this.nonce = sent.get("nonce") ?? "";
    const cookie = (getHeader(headers, "set-cookie") ?? "").split(";", 1);
    const search = `?code=c0de&state=${sent.get("state")}${more}`;
    this.context = contextOf({ path: "/done", search, headers: ["cookie", ...cookie] }, { trace: this.trace });
  }

  /** The claims of a valid id token, with changes. */
  claims(changes: JWTPayload = {}): JWTPayload {
    const now = Math.floor(Date.now() / 1000);
    return { iss: issuer, aud: "gateway", sub: "jo", nonce: this.nonce, iat: now, exp: now + 600, ...changes };
  }

  async finish(): Promise<LocalReply> {
    const reply = await this.#policy.onRequest?.(this.context);
    assert.ok(reply !== undefined);
    return reply;
  }

  /** `<status> <message> | <what the log says>` */
  async rejection(): Promise<string> {
    try {
      await this.finish();
    } catch (error) {
      const { status, message, cause } = error as GatewayError;
      const told = `${status} ${message} | ${cause instanceof Error ? cause.message : ""}`;
      assert.ok(!`${told} ${JSON.stringify(this.trace.events)}`.includes("eyJ"), "no token is shown");
      assert.ok(!told.includes(SECRET), "nor the secret");
      return told;
    }
    throw new Error("the callback was not rejected");
  }
}

function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function tokens(idToken: string | undefined): object {
  return { access_token: "eyJ-access", token_type: "Bearer", id_token: idToken };
}

function sign(claims: JWTPayload, key = keys.privateKey, alg = "ES256", kid = "1"): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(key);
}

async function answerToken(claims: JWTPayload, key = keys.privateKey): Promise<void> {
  const idToken = await sign(claims, key);
  answer = (response) => json(response, tokens(idToken));
}

test("the code is exchanged with the secret and the verifier; the trace shows the call", async () => {
  const login = new Login();
  const idToken = await sign(login.claims());
  let asked: { authorization: string | undefined; body: URLSearchParams } | undefined;
  answer = async (response, request) => {
    asked = { authorization: request.headers.authorization, body: new URLSearchParams(await text(request)) };
    json(response, tokens(idToken));
  };
  const reply = await login.finish();
  assert.equal(reply.status, 302);
  assert.equal(getHeader(reply.headers, "location"), "http://example.com/shop/cart?page=2");
  assert.equal(asked?.authorization, `Basic ${Buffer.from("gateway:s3cret+value").toString("base64")}`);
  const { code_verifier, ...others } = Object.fromEntries(asked?.body ?? []);
  assert.match(code_verifier ?? "", /^[\w-]{43}$/);
  assert.deepEqual(others, { grant_type: "authorization_code", code: "c0de", redirect_uri: "http://example.com/done" });
  assert.deepEqual(login.trace.events, [
    { scope: "oidc", target },
    { scope: "oidc", status: 200, error: null },
    { kind: "oidc", details: { action: "callback", result: "logged in" } },
  ]);
  assert.doesNotMatch(JSON.stringify(login.trace.events), /eyJ/);
});

/** How a refresh of a session of the user `jo`, with the refresh token `r1`, ends if the token endpoint returns this. */
async function renewal(body: object) {
  const flow = new LoginFlow(configOf(), new Uint8Array(32).fill(1), DEPS.fetch);
  const claims = { sub: "jo", sid: "s1", exp: Math.floor(Date.now() / 1000) + 60 };
  const session = flow.sessions.begin({ id: { token: "id", claims }, access: "a", refresh: "r1" });
  answer = (response) => json(response, { access_token: "a2", token_type: "Bearer", ...body });
  return flow.renew(session, contextOf());
}

test("a refresh keeps what the provider does not send again, and takes the claims of a new id token", async () => {
  const same = await renewal({});
  assert.ok(same.state === "renewed");
  assert.deepEqual([same.session.refresh, same.session.claims.sid], ["r1", "s1"]);
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, aud: "gateway", sub: "jo", iat: now, exp: now + 600, plan: "gold" };
  const changed = await renewal({ refresh_token: "r2", id_token: await sign(claims) });
  assert.ok(changed.state === "renewed");
  const { refresh, claims: got } = changed.session;
  assert.deepEqual([refresh, got.plan, got.sid], ["r2", "gold", "s1"], "the session of a logout is still known");
});

test("a refresh cannot make the session another user's", async () => {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, aud: "gateway", sub: "eve", iat: now, exp: now + 600 };
  const { state, ...more } = await renewal({ refresh_token: "r2", id_token: await sign(claims) });
  assert.deepEqual([state, more], ["refused", { why: "the id token is another user's" }]);
});

test("a session lasts an hour at most", async () => {
  const login = new Login();
  await answerToken(login.claims({ exp: Math.floor(Date.now() / 1000) + 7200 }));
  const reply = await login.finish();
  assert.match(getHeader(reply.headers, "set-cookie") ?? "", /; Max-Age=3600$/);
});

test("id tokens for another login, client, provider or time are rejected", async () => {
  const now = Math.floor(Date.now() / 1000);
  for (const [changes, expected] of [
    [{ nonce: "another" }, /^400 oidc failure: the nonce of the id token is not that of the login \|/],
    [
      { nonce: undefined },
      /^(400 oidc failure: the nonce of the id token is not that of the login|500 oidc failure: the id token is invalid) \|/,
    ],
    [{ iss: "https://evil.example.com" }, /^500 oidc failure: the id token is invalid \| unexpected JWT "iss"/],
    [{ aud: "another" }, /^500 oidc failure: the id token is invalid \| unexpected JWT "aud"/],
    [{ aud: ["gateway", "another"] }, /^500 oidc failure: the id token is invalid \|/],
    [{ exp: now - 120 }, /^500 oidc failure: the id token is invalid \|/],
    [{ exp: undefined }, /^500 oidc failure: the id token is invalid \|/],
    [{ sub: undefined }, /^500 oidc failure: the id token is invalid \|/],
  ] as const) {
    const login = new Login();
    await answerToken(login.claims(changes as JWTPayload));
    assert.match(await login.rejection(), expected, JSON.stringify(changes));
  }
});

test("id tokens that the provider's keys did not sign are rejected", async () => {
  const login = new Login();
  await answerToken(login.claims(), otherKeys.privateKey);
  assert.match(await login.rejection(), /^500 oidc failure: the id token is invalid \| signature verification failed$/);
  const unsigned = new Login();
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  answer = (response) => json(response, tokens(`${part({ alg: "none" })}.${part(unsigned.claims())}.`));
  assert.match(await unsigned.rejection(), /^502 oidc failure: the token endpoint gave no valid response \|/);
});

test("the token endpoint decides: a bad code gets 400, a failing provider 502, an unreachable one 503", async () => {
  for (const [respond, expected] of [
    [
      (r) => json(r, { access_token: "eyJ-access", token_type: "Bearer" }),
      /^500 oidc failure: the token endpoint returned no id token/,
    ],
    [(r) => json(r, { error: "invalid_grant" }, 400), /^400 .* \| the token endpoint said invalid_grant$/],
    [(r) => r.writeHead(400).end("bad code"), /^400 .*the provider rejects the code \|/],
    [
      (r) => json(r, { error: "invalid_client" }, 401),
      /^500 .*the token endpoint refuses the request of the gateway \| the token endpoint said invalid_client$/,
    ],
    [(r) => json(r, { error: "x" }, 500), /^502 .*the token endpoint gave no valid response \|/],
    [(r) => r.writeHead(503).end("away"), /^502 .*the token endpoint gave no valid response \|/],
    [
      (r) => r.writeHead(302, { location: `${issuer}/token2` }).end(),
      /^502 .*the token endpoint gave no valid response \|/,
    ],
    [(r) => r.end("hello"), /^502 .*the token endpoint gave no valid response \|/],
    [(r) => r.destroy(), /^503 .*the provider cannot be reached \| .*the upstream closed the connection/],
    [(r) => json(r, { x: "x".repeat(65 * 1024) }), /^503 .* \| the response is longer than 65536 bytes$/],
  ] as [(response: ServerResponse) => void, RegExp][]) {
    answer = respond;
    assert.match(await new Login().rejection(), expected);
  }
});

test("more claims than cookies can hold are rejected", async () => {
  const login = new Login();
  await answerToken(login.claims({ groups: Array.from({ length: 1500 }, (_, i) => `group-${i}`) }));
  assert.match(await login.rejection(), /^500 oidc failure: claims and tokens are too large for cookies \| \d+ bytes/);
});

test("a callback that names another provider is rejected before anything is sent", async () => {
  answer = () => assert.fail("the token endpoint was asked");
  const login = new Login("&iss=https%3A%2F%2Fevil.example.com");
  assert.match(await login.rejection(), /^400 oidc failure: invalid callback \|/);
  assert.match(await new Login("&code=second").rejection(), /^400 oidc failure: invalid callback \|/);
});

test("a provider that sends iss in callbacks must also send it with an error", async () => {
  answer = () => assert.fail("the token endpoint was asked");
  const names = { callbackNamesIssuer: true };
  const invalid = /^400 oidc failure: invalid callback \|/;
  assert.match(await new Login("", names).rejection(), invalid);
  assert.match(await new Login("&error=access_denied", names).rejection(), invalid);
  const twice = `&iss=${encodeURIComponent(issuer)}&iss=x`;
  assert.match(await new Login(twice, names).rejection(), invalid);
  const named = `&error=access_denied&iss=${encodeURIComponent(issuer)}`;
  assert.match(await new Login(named, names).rejection(), /^400 oidc failure: the provider returned an error/);
  const login = new Login(`&iss=${encodeURIComponent(issuer)}`, names);
  await answerToken(login.claims());
  assert.equal((await login.finish()).status, 302);
});

test("when the client leaves, the call is cancelled", async () => {
  const login = new Login();
  const closed = new Promise<void>((resolve) => {
    answer = (response) => {
      response.on("close", resolve);
      login.context.end();
    };
  });
  assert.match(await login.rejection(), /the provider cannot be reached/);
  await closed;
});

test("a key that the set does not have: the login fails, and the set is fetched again; a wrong signature does not cause this", async () => {
  const jwksUrl = `${issuer}/keys`;
  const wanted: string[] = [];
  const wantDocument = (url: string): void => void wanted.push(url);
  const answerWith = async (login: Login, key: typeof keys.privateKey, kid: string): Promise<void> => {
    const idToken = await sign(login.claims(), key, "ES256", kid);
    answer = (response) => json(response, tokens(idToken));
  };
  const forged = new Login("", { jwksUrl }, { wantDocument });
  await answerWith(forged, otherKeys.privateKey, "1");
  assert.match(await forged.rejection(), /^500 .*signature verification failed/);
  assert.deepEqual(wanted, []);
  const rotated = new Login("", { jwksUrl }, { wantDocument });
  await answerWith(rotated, otherKeys.privateKey, "2");
  assert.match(await rotated.rejection(), /^500 .*no applicable key/);
  assert.deepEqual(wanted, [jwksUrl]);
});
