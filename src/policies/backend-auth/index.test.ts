import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { type JWTPayload, jwtVerify } from "jose";
import type { CompiledPolicy } from "../compile.ts";
import { redactPolicy } from "../registry.ts";
import type { BackendAuth } from "../schema/backend-auth.ts";
import { schema } from "../schema/backend-auth.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace, type TestContext } from "../testing/context.ts";
import { backendAuth } from "./index.ts";

const create = creatorOf(backendAuth);

const policy = (config: object): CompiledPolicy => create(schema.parse(config) as unknown as BackendAuth, DEPS);

async function after(config: object, context: TestContext = contextOf({ search: "" })): Promise<TestContext> {
  await policy(config).onRequest?.(context);
  return context;
}

/** A request whose token jwtAuth has verified. */
function withToken(token: string): TestContext {
  const context = contextOf({ headers: ["x", "y"] });
  context.requestMetadata.token = token;
  return context;
}

test("a fixed key: as a bearer token or at its location, in place of what the client sent", async () => {
  const headers = ["authorization", "Basic x", "cookie", "a=1; k=client", "x", "y"];
  assert.deepEqual((await after({ key: "s3" }, contextOf({ headers: [...headers] }))).request.headers, [
    ...["authorization", "Bearer s3"],
    ...headers.slice(2),
  ]);
  const cookie = { key: { value: "s3\n", location: { cookie: { name: "k" } } } };
  assert.deepEqual((await after(cookie, contextOf({ headers: [...headers] }))).request.headers, [
    ...headers.slice(0, 2),
    ...["cookie", "a=1; k=s3", "x", "y"],
  ]);
  const query = { key: { value: "s&3", location: { queryParameter: { name: "k" } } } };
  assert.equal((await after(query, contextOf({ search: "?k=client&b=2" }))).request.search, "?b=2&k=s%263");
});

test("several fixed credentials", async () => {
  const credentials = [
    { location: { header: { name: "X-Key" } }, key: "one" },
    { location: { cookie: { name: "k" } }, key: "two" },
  ];
  assert.deepEqual((await after({ credentials })).request.headers, ["x-key", "one", "cookie", "k=two"]);
});

test("passthrough sends the verified token, and nothing for a request without a token", async () => {
  assert.deepEqual((await after({ passthrough: {} }, withToken("t"))).request.headers, [
    ...["x", "y", "authorization", "Bearer t"],
  ]);
  assert.deepEqual((await after({ passthrough: {} }, contextOf())).request.headers, []);
});

test("signed tokens have the configured claims, and one serves many requests until half of its lifetime", async (t) => {
  for (const [type, options, alg] of [
    ["rsa", { modulusLength: 2048 }, "RS256"],
    ["rsa", { modulusLength: 2048 }, "PS256"],
    ["ec", { namedCurve: "P-384" }, "ES384"],
  ] as const) {
    t.mock.timers.enable({ apis: ["Date"], now: 1_800_000_000_000 });
    const { privateKey, publicKey } = generateKeyPairSync(type as "rsa", options as { modulusLength: number });
    const signingKey = privateKey.export({ type: "pkcs8", format: "pem" });
    const claims = { iss: "gateway", aud: ["b"], file: 1 };
    const each = policy({ jwtSign: { signingKey, alg, kid: "k", claims } });
    const tokenOf = async (): Promise<string> => {
      const context = contextOf();
      await each.onRequest?.(context);
      return (context.request.headers[1] ?? "").replace("Bearer ", "");
    };
    const first = await tokenOf();
    const { payload, protectedHeader } = await jwtVerify(first, publicKey, { audience: "b" });
    assert.deepEqual([protectedHeader.alg, protectedHeader.kid], [alg, "k"]);
    const expected: JWTPayload = { file: 1, iss: "gateway", aud: ["b"], iat: 1_800_000_000, exp: 1_800_000_300 };
    assert.deepEqual(payload, expected);
    t.mock.timers.tick(149_000);
    assert.equal(await tokenOf(), first);
    t.mock.timers.tick(2000);
    assert.notEqual(await tokenOf(), first);
    t.mock.timers.reset();
  }
});

test("keys that cannot sign, and claims that the gateway sets, are rejected", () => {
  const pem = (type: "ec" | "ed25519", options: object): string =>
    generateKeyPairSync(type as "ec", options as { namedCurve: string }).privateKey.export({
      type: "pkcs8",
      format: "pem",
    }) as string;
  const ec = pem("ec", { namedCurve: "P-256" });
  const field = "backendAuth.jwtSign";
  for (const [jwtSign, message] of [
    [{ signingKey: "secret" }, `${field}.signingKey: is not a private key; write one in PEM without a passphrase`],
    [{ signingKey: ec }, `${field}.alg: is RS256, but the key can be used with ES256 only; set alg`],
    [{ signingKey: pem("ed25519", {}) }, `${field}.signingKey: keys of type ed25519 cannot sign here; use RSA or EC`],
  ] as const)
    assert.throws(() => policy({ jwtSign }), { message });
  assert.throws(() => schema.parse({ jwtSign: { signingKey: ec, alg: "ES256", claims: { exp: 1 } } }), /iat and exp/);
  assert.throws(() => schema.parse({ jwtSign: { signingKey: ec, alg: "ES256", ttl: "10ms" } }), /at least 1s/);
  assert.throws(() => policy({ key: "a\nb" }), /^Error: backendAuth.key.value: has a control character/);
});

test("neither dumps nor traces contain the secrets", async () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const signingKey = privateKey.export({ type: "pkcs8", format: "pem" });
  const credentials = [{ location: { header: { name: "x-k" } }, key: "secret-2" }];
  for (const config of [{ key: "secret-3", credentials }, { jwtSign: { signingKey } }]) {
    const text = JSON.stringify(redactPolicy("backendAuth", schema.parse(config), DEPS.hidden));
    assert.ok(!text.includes("secret-") && !text.includes("PRIVATE KEY"), text);
  }
  const trace = new RecordedTrace();
  policy({ key: "secret-3", credentials }).onRequest?.(contextOf({}, { trace }));
  assert.deepEqual(trace.events, [
    { hide: "header", name: "x-k" },
    { kind: "backend_auth", details: { location: "header" } },
    { hide: "header", name: "authorization" },
    { kind: "backend_auth", details: { location: "header" } },
  ]);
});
