import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import type { CompiledPolicy } from "../compile.ts";
import { redactPolicy } from "../registry.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace, type TestContext } from "../testing/context.ts";
import { basicAuth } from "./index.ts";
import type { BasicAuth } from "./schema.ts";
import { schema } from "./schema.ts";

const create = creatorOf(basicAuth);

const HTPASSWD = readFileSync(new URL("fixtures/htpasswd", import.meta.url), "utf8");

const policy = (config: object = {}): CompiledPolicy =>
  create(schema.parse({ htpasswd: HTPASSWD, mode: "strict", ...config }) as BasicAuth, DEPS);

const basic = (userPassword: string, header = "authorization"): TestContext =>
  contextOf({ headers: [header, `Basic ${Buffer.from(userPassword).toString("base64")}`, "x", "y"] });

async function outcome(policy: CompiledPolicy, context: TestContext): Promise<GatewayError | undefined> {
  try {
    await policy.onRequest?.(context);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return error;
  }
}

const WRONG = "basic authentication failure: invalid credentials";

test("every hash that htpasswd makes: the right password passes, a wrong one does not", async () => {
  const each = policy();
  const users = ["bcrypt", "apr1", "sha1", "sha256", "sha512"].map((user) => [user, `${user}-secret`]);
  for (const [user, password] of [...users, ["zoë", "pässwörd"]]) {
    const context = basic(`${user}:${password}`);
    assert.equal(await outcome(each, context), undefined, user);
    assert.deepEqual(context.requestMetadata.basicAuth, { username: user });
    assert.deepEqual(context.request.headers, ["x", "y"]);
    for (const wrong of [`${password}x`, "", "x".repeat(200)])
      assert.equal((await outcome(each, basic(`${user}:${wrong}`)))?.message, WRONG, user);
  }
});

test("a right password is verified once: later, the policy decides at once", async () => {
  const each = policy();
  assert.ok(each.onRequest?.(basic("bcrypt:bcrypt-secret")) instanceof Promise);
  assert.equal(await outcome(each, basic("bcrypt:bcrypt-secret")), undefined);
  assert.equal(each.onRequest?.(basic("bcrypt:bcrypt-secret")), undefined);
  assert.ok((await outcome(each, basic("bcryp:tbcrypt-secret"))) instanceof GatewayError);
});

test("unknown users and malformed credentials are rejected", async () => {
  for (const text of ["nobody:bcrypt-secret", "bcrypt", ":", "__proto__:x"])
    assert.equal((await outcome(policy(), basic(text)))?.message, WRONG, text);
  for (const header of ["Basic ?", "Basic /w==", "Basic "])
    assert.equal((await outcome(policy(), contextOf({ headers: ["authorization", header] })))?.message, WRONG, header);
});

test("the challenge: 401, or 407 of a proxy; the realm is quoted", async () => {
  const none = await outcome(policy(), contextOf());
  assert.equal(none?.message, "basic authentication failure: no basic authentication credentials found");
  assert.deepEqual([none?.status, none?.headers], [401, ["www-authenticate", 'Basic realm="Restricted"']]);
  const proxy = policy({
    realm: 'a "b" \\',
    authorizationLocation: { header: { name: "Proxy-Authorization", prefix: "Basic " } },
  });
  const rejected = await outcome(proxy, basic("apr1:wrong", "proxy-authorization"));
  assert.deepEqual(
    [rejected?.status, rejected?.headers],
    [407, ["proxy-authenticate", 'Basic realm="a \\"b\\" \\\\"']],
  );
  assert.equal(await outcome(proxy, basic("apr1:apr1-secret", "proxy-authorization")), undefined);
});

test("optional: no credentials pass, wrong ones do not", async () => {
  assert.equal(await outcome(policy({ mode: "optional" }), contextOf()), undefined);
  assert.equal((await outcome(policy({ mode: "optional" }), basic("apr1:wrong")))?.message, WRONG);
});

test("neither dumps nor traces contain hashes or passwords", async () => {
  const trace = new RecordedTrace();
  const each = policy();
  const headers = ["authorization", `Basic ${Buffer.from("sha1:sha1-secret").toString("base64")}`];
  await each.onRequest?.(contextOf({ headers }, { trace }));
  assert.deepEqual(trace.events, [{ kind: "basic_auth", details: { valid: true } }]);
  assert.deepEqual(redactPolicy("basicAuth", schema.parse({ htpasswd: HTPASSWD, mode: "strict" }), DEPS.hidden), {
    htpasswd: "<redacted>",
    realm: "Restricted",
    mode: "strict",
    authorizationLocation: { header: { name: "authorization", prefix: "Basic " } },
  });
});

test("invalid lists of users are rejected, without showing a hash", () => {
  const table = [
    ["a", "line 1: is not user:hash"],
    [
      "#\n\na:secret",
      "line 3: the password of a is in plain text or in an unknown format; generate the line again with htpasswd -B",
    ],
    [
      "a:aEEqNh6luBspw",
      "line 1: the password of a uses the old crypt, which looks only at the first eight characters of a password; generate the line again with htpasswd -B",
    ],
    [
      "a:{SHA}F/WZ9PxtuIpP2yyadrWdU4eK0og=\na:{SHA}F/WZ9PxtuIpP2yyadrWdU4eK0og=",
      "line 2: the user a is listed above; remove one of the lines",
    ],
    [
      `a:$6$rounds=9999999$x$${"a".repeat(86)}`,
      "line 1: the password of a takes 9999999 rounds, at most 1000000 are allowed; generate the line again with htpasswd -B",
    ],
  ];
  for (const [htpasswd, message] of table)
    assert.throws(() => policy({ htpasswd }), { message: `basicAuth.htpasswd: ${message}` });
});

test("a trace says that there were no credentials", async () => {
  const trace = new RecordedTrace();
  assert.equal((await outcome(policy(), contextOf({}, { trace })))?.status, 401);
  assert.deepEqual(trace.events, [
    { kind: "basic_auth", details: { valid: false, reason: "no credentials found" }, severity: "error" },
  ]);
});
