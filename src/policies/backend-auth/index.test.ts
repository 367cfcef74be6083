import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { type JWTPayload, jwtVerify } from "jose";
import { GatewayError } from "../../base/errors.ts";
import type { BackendAuth } from "../../ir/policies.ts";
import { contextOf, RecordedTrace, type TestContext } from "../testing/context.ts";
import type { CompiledPolicy } from "../types.ts";
import { create } from "./index.ts";
import { schema } from "./schema.ts";

const policy = (config: object): CompiledPolicy => create(schema.parse(config) as BackendAuth);

async function after(config: object, context: TestContext = contextOf({ search: "" })): Promise<TestContext> {
  await policy(config).onRequest?.(context);
  return context;
}

/** A request of whose token jwtAuth has approved. */
function withToken(token: string): TestContext {
  const context = contextOf({ headers: ["x", "y"] });
  context.findings.token = token;
  return context;
}

async function refusal(outcome: unknown): Promise<string> {
  try {
    await outcome;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return `${error.status} ${error.message}`;
  }
  return "none";
}

test("a fixed key: as bearer token, or where it is wanted, in place of what the client has sent", async () => {
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

test("passthrough: the token that has been verified, and nothing where there was none", async () => {
  assert.deepEqual((await after({ passthrough: {} }, withToken("t"))).request.headers, [
    ...["x", "y", "authorization", "Bearer t"],
  ]);
  assert.deepEqual((await after({ passthrough: {} }, contextOf())).request.headers, []);
});

test("signed tokens: what is configured is in them, and one serves many requests until half of its time is over", async (t) => {
  for (const [type, options, alg] of [
    ["rsa", { modulusLength: 2048 }, "RS256"],
    ["ec", { namedCurve: "P-384" }, "ES384"],
    ["ed25519", {}, "EdDSA"],
  ] as const) {
    t.mock.timers.enable({ apis: ["Date"], now: 1_800_000_000_000 });
    const { privateKey, publicKey } = generateKeyPairSync(type as "rsa", options as { modulusLength: number });
    const key = privateKey.export({ type: "pkcs8", format: "pem" });
    const each = policy({ jwtSign: { key, keyId: "k", issuer: "gateway", audiences: ["b"], claims: { file: 1 } } });
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

test("keys that cannot sign are refused", () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = privateKey.export({ type: "pkcs8", format: "pem" });
  assert.throws(() => policy({ jwtSign: { key: "secret" } }), /^Error: backendAuth.jwtSign.key: is no private key/);
  assert.throws(
    () => policy({ jwtSign: { key, algorithm: "RS256" } }),
    /algorithm: the key can be used with ES256 only/,
  );
  assert.throws(() => policy({ key: "a\nb" }), /^Error: backendAuth.key.value: has a control character/);
});

/** A token endpoint that answers with what `answer` makes of the form. */
async function endpoint(answer: (form: URLSearchParams, request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    answer(new URLSearchParams(Buffer.concat(chunks).toString()), request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    tokenEndpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("token exchange: one for each token of clients, kept until it expires", async () => {
  const asked: string[] = [];
  await using server = await endpoint((form, { headers }, response) => {
    const token = form.get("subject_token");
    form.delete("subject_token");
    asked.push(`${token} ${headers.authorization} ${form}`);
    response.end(JSON.stringify({ access_token: `for-${token}`, expires_in: token === "short" ? 5 : 3600 }));
  });
  const client = { clientId: "a b", clientSecret: "c:d" };
  const each = policy({
    oauthTokenExchange: { tokenEndpoint: server.tokenEndpoint, ...client, audience: "b", scopes: ["r", "w"] },
  });
  const contexts = ["one", "one", "two", "short"].map(withToken);
  await Promise.all(contexts.map((context) => each.onRequest?.(context)));
  await each.onRequest?.(withToken("one"));
  await each.onRequest?.(withToken("short"));
  assert.deepEqual(
    contexts.map(({ request }) => request.headers[3]),
    ["Bearer for-one", "Bearer for-one", "Bearer for-two", "Bearer for-short"],
  );
  assert.deepEqual(asked.map((line) => line.split(" ")[0]).sort(), ["one", "short", "short", "two"]);
  assert.equal(
    asked.find((line) => line.startsWith("one")),
    `one Basic ${btoa("a%20b:c%3Ad")} grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&audience=b&scope=r+w`,
  );
});

test("token exchange: failures are 500, and are not kept", async () => {
  const answers: [number, string][] = [
    [400, '{"error":"invalid_target","error_description":"about the secret"}'],
    [200, "{}"],
    [200, '{"access_token":"line\\nbreak"}'],
    [302, ""],
  ];
  await using server = await endpoint((_form, _request, response) => {
    const [status, text] = answers.shift() ?? [200, '{"access_token":"good"}'];
    response.writeHead(status, { location: "/elsewhere" }).end(text);
  });
  const each = policy({ oauthTokenExchange: { tokenEndpoint: server.tokenEndpoint } });
  const ask = (token = "t"): Promise<string> => refusal(each.onRequest?.(withToken(token)));
  const failed = "500 backend authentication failed: ";
  assert.equal(await ask(), `${failed}the token endpoint answers with status 400 (invalid_target)`);
  assert.equal(await ask(), `${failed}the token endpoint answers without an access_token`);
  assert.equal(await ask("odd"), `${failed}the value has a control character such as a line break`);
  assert.match(await ask(), /^500 backend authentication failed: .*redirect/);
  assert.equal(await ask(), "none");
  assert.equal(await refusal(each.onRequest?.(contextOf())), `${failed}the request has no verified token to exchange`);
});

test("neither what is shown nor a trace has the secrets", async () => {
  const key = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
  const exchange = { tokenEndpoint: "http://a/", clientId: "c", clientSecret: "secret-1" };
  const credentials = [{ location: { header: { name: "x-k" } }, key: "secret-2" }];
  for (const config of [{ key: "secret-3", credentials }, { jwtSign: { key } }, { oauthTokenExchange: exchange }]) {
    const text = JSON.stringify(policy(config).shown);
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
