import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { call, messageOf, traceOf, Upstream } from "../trace/support.ts";

let upstream: Upstream;
let gateway: TestGateway;

before(async () => {
  upstream = await Upstream.start();
  const backends = [{ host: upstream.address }];
  const route = (name: string, rules: readonly unknown[], policies: object = {}): object => ({
    name,
    matches: [{ path: { pathPrefix: `/${name}` } }],
    policies: { authorization: { rules }, ...policies },
    backends,
  });
  const owner = 'request.headers["x-user"] == "owner"';
  const routes = [
    route("allow", [owner, { allow: 'request.headers["x-role"] == "admin"' }]),
    route("deny", [{ deny: 'request.method == "DELETE"' }, { allow: "true" }]),
    route("require", [{ require: "'x-ticket' in request.headers" }]),
    route("compared", [
      'request.headers["x-user"] == "owner" && request.headers["x-token"] == "right-secret"',
      'request.headers["x-copy"] == "x" || request.uri == "y" || jwt.sub == "z"',
    ]),
    route("failing", [{ deny: "jwt.banned" }]),
    route("failing-require", [{ require: "jwt.member" }]),
    {
      ...route("inner", [{ allow: owner }]),
      backends: [
        {
          host: upstream.address,
          policies: { authorization: { rules: [{ require: '"x-paid" in request.headers' }] } },
        },
      ],
    },
  ];
  const listeners = [{ policies: { authorization: { rules: [{ deny: '"x-blocked" in request.headers' }] } }, routes }];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners }] });
});
after(async () => {
  await gateway.stop();
  await upstream.close();
});

async function status(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<number> {
  const { status, body } = await call(gateway.port(), { path, headers, method });
  if (status !== 200) assert.equal(body.toString(), "authorization failed");
  return status;
}

test("if there are allow rules, everything else is denied", async () => {
  assert.equal(await status("/allow"), 403);
  assert.equal(await status("/allow", { "x-user": "owner" }), 200);
  assert.equal(await status("/allow", { "x-role": "admin" }), 200);
});

test("deny rules win over allow rules; require rules must be true", async () => {
  assert.equal(await status("/deny"), 200);
  assert.equal(await status("/deny", {}, "DELETE"), 403);
  assert.equal(await status("/require"), 403);
  assert.equal(await status("/require", { "x-ticket": "1" }), 200);
});

test("a rule that reads an absent value is not true", async () => {
  assert.equal(await status("/failing"), 200);
  assert.equal(await status("/failing-require"), 403);
});

test("the rules of gateway, route and backend must all allow a request", async () => {
  const owner = { "x-user": "owner" };
  assert.equal(await status("/inner", owner), 403);
  assert.equal(await status("/inner", { ...owner, "x-paid": "1" }), 200);
  assert.equal(await status("/inner", { "x-paid": "1" }), 403);
  assert.equal(await status("/inner", { ...owner, "x-paid": "1", "x-blocked": "1" }), 403);
});

test("a gRPC client gets a gRPC status", async () => {
  const headers = { "content-type": "application/grpc" };
  const answer = await call(gateway.port(), { path: "/allow", headers });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["grpc-status"], "7");
  assert.equal(answer.headers["grpc-message"], "authorization%20failed");
});

test("the trace names each rule, whether it was true, and the result", async () => {
  const events = await traceOf(gateway, async () => assert.equal(await status("/deny", {}, "DELETE"), 403));
  const results = events.flatMap(({ message }) => (message.type === "authorizationResult" ? [message] : []));
  assert.deepEqual(
    results.map(({ result }) => result),
    ["allow", "deny"],
  );
  assert.deepEqual(results[1]?.rules, [
    { name: 'request.method == "DELETE"', matched: true, mode: "deny", inputs: { "request.method": "DELETE" } },
    { name: "true", matched: true, mode: "allow" },
  ]);
  assert.deepEqual(messageOf(events, "requestFinished").status, 403);
});

test("the trace of a 403 shows the compared values, without secrets", async () => {
  const headers = { "x-user": "guest", "x-token": "wrong-secret", "x-copy": "copy of wrong-secret" };
  const long = "l".repeat(300);
  const events = await traceOf(gateway, () => status(`/compared?${long}&sig=query-secret`, headers));
  const [, { rules } = { rules: [] }] = events.flatMap(({ message }) =>
    message.type === "authorizationResult" ? [message] : [],
  );
  assert.deepEqual(rules[0]?.inputs, {
    'request.headers["x-user"]': "guest",
    'request.headers["x-token"]': "<redacted>",
  });
  const { "request.uri": uri, ...others } = rules[1]?.inputs ?? {};
  assert.deepEqual(others, { 'request.headers["x-copy"]': "copy of <redacted>", "jwt.sub": null });
  assert.match(String(uri), /^http:\/\/a\.test\/compared\?l+…$/);
  assert.doesNotMatch(
    JSON.stringify(events.map(({ message }) => ({ ...message, effectivePolicy: "" }))),
    /wrong-secret|query-secret/,
  );
});
