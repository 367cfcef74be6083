import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { TestGateway } from "../../helpers/gateway.ts";
import { call, traceOf, Upstream } from "../trace/support.ts";

const ISSUER = "https://issuer.example";
const FAR = 4_000_000_000;

let upstream: Upstream;
let gateway: TestGateway;
let token: string;

before(async () => {
  upstream = await Upstream.start();
  upstream.on("/", (request, response) => response.end(JSON.stringify(request.headers)));
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  token = await new SignJWT({ sub: "alice", rawToken: "a claim of that name", level: 3 })
    .setProtectedHeader({ alg: "ES256", kid: "1" })
    .setIssuer(ISSUER)
    .setExpirationTime(FAR)
    .sign(privateKey);
  const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "1" }] });
  const set = {
    "x-shown": "jwt.rawToken",
    "x-token": "jwt.rawToken.unredacted()",
    "x-key": "apiKey.key.unredacted()",
    "x-left": "jwt.exp - 60",
    "x-first": 'form.decode("a=1&a=2").a[0]',
    "x-level": 'jwt.level + 1 == 4 ? "int" : bytes("double")',
  };
  const policies = {
    jwtAuth: { mode: "strict", issuer: ISSUER, jwks },
    apiKey: { keys: [{ key: "key-1" }], location: { header: { name: "x-api-key" } } },
    transformations: { request: { set } },
  };
  const routes = [{ policies, backends: [{ host: upstream.address }] }];
  const add = { fields: "flatten(request.headers)", token: "jwt.rawToken", all: "variables()" };
  gateway = await TestGateway.start({
    frontendPolicies: { accessLog: { add } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  });
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

test("tokens and keys are redacted until an expression asks for them; claims without a fraction are integers", async () => {
  const headers = {
    authorization: `Bearer ${token}`,
    "x-api-key": "key-1",
    "user-agent": "test/1",
    "x-two": ["a", "b"],
  };
  let sent: Record<string, unknown> = {};
  const events = await traceOf(gateway, async () => {
    const { status, body } = await call(gateway.port(), { path: "/", headers });
    assert.equal(status, 200);
    sent = JSON.parse(body.toString());
  });
  assert.equal(sent["x-shown"], "<redacted>");
  assert.equal(sent["x-token"], token);
  assert.equal(sent["x-key"], "key-1");
  assert.equal(sent["x-left"], String(FAR - 60));
  assert.equal(sent["x-first"], "1");
  assert.equal(sent["x-level"], "int");
  await gateway.until(() => gateway.lines.some((line) => line["http.path"] === "/"), "the log line");
  const line = gateway.lines.find((each) => each["http.path"] === "/");
  assert.equal(line?.["fields.user-agent"], "test/1");
  assert.deepEqual([line?.["fields.x-two.0"], line?.["fields.x-two.1"]], ["a", "b"]);
  assert.equal(line?.token, "<redacted>");
  // The token is readable only in the header that an expression sets to it.
  const all = line?.all as Record<string, unknown> | undefined;
  const jwt = JSON.stringify(all?.jwt);
  assert.ok(!jwt.includes(token) && !jwt.includes("rawToken"), jwt);
  assert.ok(events.length > 0);
});
