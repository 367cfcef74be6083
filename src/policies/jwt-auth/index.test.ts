import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { test } from "node:test";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { GatewayError } from "../../base/errors.ts";
import type { CompiledPolicy } from "../compile.ts";
import { redactPolicy } from "../registry.ts";
import { contextOf, creatorOf, DEPS, loggedText, RecordedTrace, type TestContext } from "../testing/context.ts";
import { jwtAuth } from "./index.ts";
import type { JwtAuth } from "./schema.ts";
import { schema } from "./schema.ts";

const create = creatorOf(jwtAuth);

const ISSUER = "https://issuer.example";
const now = Math.floor(Date.now() / 1000);
const rsa = await keyPair("RS256", "rsa");

async function keyPair(alg: string, kid: string) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid };
  const sign = (claims: Readonly<Record<string, unknown>>, header: object = {}): Promise<string> =>
    new SignJWT({ iss: ISSUER, exp: now + 300, sub: "alice", ...claims })
      .setProtectedHeader({ alg, kid, ...header })
      .sign(privateKey);
  return { jwk, privateKey, sign };
}

function policy(config: object = {}, ...keys: object[]): CompiledPolicy {
  const jwks = JSON.stringify({ keys: keys.length > 0 ? keys : [rsa.jwk] });
  const provider = "providers" in config ? {} : { issuer: ISSUER, jwks };
  return create(schema.parse({ mode: "strict", ...provider, ...config }) as JwtAuth, DEPS);
}

const bearer = (token: string): TestContext => contextOf({ headers: ["authorization", `Bearer ${token}`, "x", "y"] });

async function outcome(policy: CompiledPolicy, context: TestContext): Promise<string | undefined> {
  try {
    await policy.onRequest?.(context);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    assert.match(error.code, /^TG_JWT(_MISSING)?$/);
    return `${error.status} ${loggedText(error).replace(/^authentication failure: /, "")}`;
  }
}

test("a valid token passes and is removed; its claims are kept", async () => {
  const token = await rsa.sign({ aud: ["a", "b"], scope: "read" });
  const context = bearer(token);
  assert.equal(await outcome(policy({ audiences: ["b"] }), context), undefined);
  assert.deepEqual(context.request.headers, ["x", "y"]);
  assert.equal((context.requestMetadata.jwt as JWTPayload).scope, "read");
  assert.equal(context.requestMetadata.token, token);
});

test("every algorithm of the list", async () => {
  for (const alg of ["RS512", "PS256", "PS384", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]) {
    const { jwk, sign } = await keyPair(alg, alg);
    assert.equal(await outcome(policy({}, jwk), bearer(await sign({}))), undefined, alg);
  }
});

test("the log says what is wrong with a token", async () => {
  const other = await keyPair("RS256", "rsa");
  const invalid = "401 the token is invalid or malformed: ";
  const malformed = `${invalid}it is not a signed token in compact form: three parts in base64url, the first two of them JSON objects`;
  const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const table: [string, string, object?][] = [
    ["garbage", malformed],
    [[encoded({ alg: "RS256", kid: "rsa" }), "e30"].join("."), malformed],
    [[encoded({ kid: "rsa" }), "e30", "x"].join("."), malformed],
    [
      [encoded({ alg: "HS256", kid: "rsa" }), "e30", "x"].join("."),
      `${invalid}its algorithm "HS256" is not one of the key's`,
    ],
    [await rsa.sign({ nbf: "soon" }), `${invalid}its claim nbf is not a number`],
    [await rsa.sign({}, { kid: undefined }), "401 the token header does not specify a `kid`"],
    [await rsa.sign({}, { kid: "no\n" }), '401 the token uses the unknown key "no?"'],
    [
      await rsa.sign({ iss: "https://other.example" }),
      `${invalid}its claim iss is "https://other.example", which is not accepted`,
    ],
    [await rsa.sign({ aud: "x" }), `${invalid}its claim aud is "x", which is not accepted`, { audiences: ["a"] }],
    [await rsa.sign({}), `${invalid}it has no claim aud`, { audiences: ["a"] }],
    [await rsa.sign({ exp: now - 70 }), `${invalid}it expired at ${new Date((now - 70) * 1000).toISOString()}`],
    [
      await rsa.sign({ nbf: now + 120 }),
      `${invalid}it is not valid before ${new Date((now + 120) * 1000).toISOString()}`,
    ],
    [await rsa.sign({ exp: undefined }), `${invalid}it has no claim exp`],
    [
      await rsa.sign({ sub: undefined }),
      `${invalid}it has no claim sub`,
      { jwtValidationOptions: { requiredClaims: ["sub"] } },
    ],
    [await other.sign({}), `${invalid}its signature does not match the key`],
  ];
  for (const [token, message, config] of table) assert.equal(await outcome(policy(config), bearer(token)), message);
});

test("an extension that the token requires is named by its rule, not by the token's text", async () => {
  const name = `\n${"x".repeat(1000)}`;
  const header = Buffer.from(JSON.stringify({ alg: "RS256", kid: "rsa", crit: [name], [name]: 1 })).toString(
    "base64url",
  );
  const [, payload, signature] = (await rsa.sign({})).split(".");
  const message = (await outcome(policy(), bearer(`${header}.${payload}.${signature}`))) ?? "";
  assert.equal(
    message,
    "401 the token is invalid or malformed: its header requires an extension (crit) that is not supported",
  );
});

test("clocks may differ by a minute", async () => {
  const at = Math.floor(Date.now() / 1000);
  const token = await rsa.sign({ exp: at - 40, nbf: at + 40 });
  assert.equal(await outcome(policy(), bearer(token)), undefined);
});

test("neither an unsigned token nor one that is signed with the public key as a secret is accepted", async () => {
  const header = (alg: string): string => Buffer.from(JSON.stringify({ alg, kid: "rsa" })).toString("base64url");
  const [, payload] = new UnsecuredJWT({ iss: ISSUER, exp: now + 300 }).encode().split(".");
  assert.match((await outcome(policy(), bearer(`${header("none")}.${payload}.`))) ?? "", /^401 the token is invalid/);
  const secret = Buffer.from(JSON.stringify(rsa.jwk));
  const confused = await new SignJWT({ iss: ISSUER, exp: now + 300 })
    .setProtectedHeader({ alg: "HS256", kid: "rsa" })
    .sign(secret);
  assert.match((await outcome(policy(), bearer(confused))) ?? "", /"HS256" is not one of the key's$/);
});

test("a key's own alg narrows what it may be used with", async () => {
  const privateKey = createPrivateKey({ key: await exportJWK(rsa.privateKey), format: "jwk" });
  const token = await new SignJWT({ iss: ISSUER, exp: now + 300 })
    .setProtectedHeader({ alg: "RS512", kid: "rsa" })
    .sign(privateKey);
  assert.equal(await outcome(policy(), bearer(token)), undefined);
  assert.match(
    (await outcome(policy({}, { ...rsa.jwk, alg: "RS256" }), bearer(token))) ?? "",
    /"RS512" is not one of the key's$/,
  );
});

test("modes: requests without a token and with a wrong one", async () => {
  for (const [mode, none, wrong] of [
    ["strict", '401 no bearer token found: no token in the header authorization after "Bearer "', /^401 /],
    ["optional", undefined, /^401 /],
    ["permissive", undefined, /^passes$/],
  ] as const) {
    assert.equal(await outcome(policy({ mode }), contextOf()), none);
    const context = bearer("garbage");
    assert.match((await outcome(policy({ mode }), context)) ?? "passes", wrong);
    assert.equal(context.requestMetadata.jwt, undefined);
    assert.equal(context.request.headers.length, 4);
  }
});

test("several providers: the key decides, and if key ids are equal, the issuer", async () => {
  const [one, two, three] = await Promise.all([keyPair("ES256", "k"), keyPair("ES256", "k"), keyPair("ES256", "k3")]);
  const provider = (issuer: string, jwk: object) => ({ issuer, jwks: JSON.stringify({ keys: [jwk] }) });
  const providers = [provider("one", one.jwk), provider("two", two.jwk), provider("three", three.jwk)];
  const each = policy({ providers });
  assert.equal(await outcome(each, bearer(await one.sign({ iss: "one" }))), undefined);
  assert.equal(await outcome(each, bearer(await two.sign({ iss: "two" }))), undefined);
  assert.match((await outcome(each, bearer(await two.sign({ iss: "one" })))) ?? "", /signature/);
  assert.match((await outcome(each, bearer(await three.sign({ iss: "one" })))) ?? "", /its claim iss is "one"/);
});

test("a token is verified once: later, the policy decides at once, until it expires", async (t) => {
  const each = policy();
  const token = await rsa.sign({ exp: now + 10 });
  const first = each.onRequest?.(bearer(token));
  assert.ok(first instanceof Promise);
  await first;
  assert.equal(await outcome(each, bearer(token)), undefined);
  assert.equal(each.onRequest?.(bearer(token)), undefined);
  t.mock.timers.enable({ apis: ["Date"], now: (now + 70) * 1000 - 1 });
  assert.equal(each.onRequest?.(bearer(token)), undefined);
  t.mock.timers.setTime((now + 70) * 1000);
  assert.match((await outcome(each, bearer(token))) ?? "", /it expired at /);
});

test("neither dumps nor traces contain the token", async () => {
  const trace = new RecordedTrace();
  const each = policy();
  const token = await rsa.sign({});
  await each.onRequest?.(contextOf({ headers: ["authorization", `Bearer ${token}`] }, { trace }));
  assert.deepEqual(trace.events, [{ kind: "jwt", details: { valid: true } }]);
  const config = schema.parse({ mode: "strict", issuer: ISSUER, jwks: JSON.stringify({ keys: [rsa.jwk] }) });
  assert.deepEqual(redactPolicy("jwtAuth", config, DEPS.hidden), {
    mode: "strict",
    location: { header: { name: "authorization", prefix: "Bearer " } },
    providers: [{ issuer: ISSUER, keys: ["rsa"] }],
  });
});

test("a trace says why a request was rejected, or passed without a token", async () => {
  for (const [mode, context, event] of [
    ["strict", {}, { kind: "jwt", details: { valid: false, reason: "no bearer token found" }, severity: "error" }],
    [
      "optional",
      {},
      {
        kind: "jwt",
        reason: 'no token in the header authorization after "Bearer ", which mode optional allows',
        severity: "warn",
      },
    ],
    [
      "permissive",
      { headers: ["authorization", "Bearer x"] },
      {
        kind: "jwt",
        details: {
          valid: false,
          reason:
            "the token is invalid or malformed: it is not a signed token in compact form: three parts in base64url, the first two of them JSON objects",
        },
        severity: "warn",
      },
    ],
  ] as const) {
    const trace = new RecordedTrace();
    await outcome(
      policy({ mode }),
      contextOf({ headers: "headers" in context ? Array.from<string>(context.headers) : [] }, { trace }),
    );
    assert.deepEqual(trace.events, [event]);
  }
});

test("entries of a key set without a usable kid are ignored", async () => {
  const each = policy({}, rsa.jwk, { ...rsa.jwk, kid: undefined });
  const keys = [null, 1, { kty: "oct" }, rsa.jwk];
  const config = schema.parse({ issuer: ISSUER, jwks: JSON.stringify({ keys }) }) as JwtAuth;
  const redacted = redactPolicy("jwtAuth", config, DEPS.hidden) as { providers: unknown };
  assert.deepEqual(redacted.providers, [{ issuer: ISSUER, keys: ["rsa"] }]);
  const odd = create(config, DEPS);
  for (const one of [each, odd]) {
    assert.equal(await outcome(one, bearer(await rsa.sign({}))), undefined);
  }
});

test("key sets that cannot be used are rejected", async () => {
  const small = { ...rsa.jwk, n: Buffer.from(`\x80${"\x01".repeat(127)}`, "latin1").toString("base64url") };
  const table: [object, RegExp][] = [
    [{ ...(await exportJWK(rsa.privateKey)), kid: "rsa" }, /^Error: jwtAuth.jwks: has the private part of key "rsa"/],
    [{ kty: "oct", k: "c2VjcmV0", kid: "s" }, /has no key that tokens can be verified with/],
    [{ ...rsa.jwk, use: "enc" }, /has no key/],
    [{ ...rsa.jwk, kid: undefined }, /has no key/],
    [{ ...rsa.jwk, n: 1 }, /key 0 \("rsa"\) cannot be read/],
    [small, /has 1024 bits; RSA keys need at least 2048/],
  ];
  for (const [jwk, message] of table) assert.throws(() => policy({}, jwk), message);
  const providers = [
    { issuer: "a", jwks: JSON.stringify({ keys: [rsa.jwk] }) },
    { issuer: "b", jwks: "[]" },
  ];
  assert.throws(() => policy({ providers }), /^Error: jwtAuth.providers.1.jwks: is not a key set/);
});
