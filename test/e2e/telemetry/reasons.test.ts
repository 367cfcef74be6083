/** `error` in the access log says what decided; `config.logging.reasons` limits it. Clients get the text of the error alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";

const SECRET = "a-secret-value";

function configuration(backend: string, logging: object = {}): object {
  const match = (path: string, name: string, value: string) => ({
    path: { exact: path },
    headers: [{ name, value: { exact: value } }],
  });
  const rules = [
    { require: 'source.address != ""' },
    { deny: 'request.path == "/admin" && request.headers["x-role"] != "ops" && request.headers.authorization != "x"' },
    { deny: 'request.path == "/fails" && json(request.headers["x-role"]).deep' },
  ];
  const missing = { service: { name: "default/none.example", port: 80 } };
  const routes = [
    { name: "canary", matches: [match("/shop", "x-canary", "yes")], backends: [{ host: backend }] },
    { name: "private", matches: [match("/private", "authorization", SECRET)], backends: [{ host: backend }] },
    {
      name: "rules",
      matches: ["/admin", "/fails"].map((path) => ({ path: { exact: path } })),
      policies: { authorization: { rules } },
      backends: [{ host: backend }],
    },
    { name: "empty", matches: [{ path: { exact: "/empty" } }], backends: [missing] },
  ];
  const services = [{ name: "none", namespace: "default", hostname: "none.example", vips: [], ports: { 80: 80 } }];
  return {
    ...(Object.keys(logging).length > 0 && { config: { logging } }),
    services,
    binds: [{ port: 0, listeners: [{ hostname: "shop.example", routes }] }],
  };
}

/** The line of a request; `head` follows the request line. */
async function lineOf(
  gateway: TestGateway,
  path: string,
  head: string,
  body: string,
): Promise<Record<string, unknown>> {
  const client = await RawPeer.connect(gateway.port());
  client.send(`GET ${path} HTTP/1.1\r\nHost: shop.example\r\n${head}\r\n`);
  const response = await client.message();
  client.socket.destroy();
  assert.equal(response.body, body);
  const fits = (line: Readonly<Record<string, unknown>>): boolean =>
    line["http.path"] === path && line["http.status"] === statusOf(response);
  await gateway.until(() => gateway.lines.some(fits), `the line of ${path}`);
  return gateway.lines.findLast(fits) ?? {};
}

const NOT_FOUND = "route not found";
const DENIED = "authorization failed";

test("the access log says what decided: the nearest route, the rule with its values, the missing endpoint", async () => {
  await using upstream = await RawUpstream.answering(() => reply("it"));
  await using gateway = await TestGateway.start(configuration(`127.0.0.1:${upstream.port}`));
  const error = async (path: string, head: string, body: string): Promise<unknown> =>
    (await lineOf(gateway, path, head, body)).error;
  assert.equal(
    await error("/shop/", "", NOT_FOUND),
    "route not found: the nearest is default/canary: path: /shop/ is not exactly /shop, at binds[0].listeners[0].routes[0]",
  );
  assert.equal(
    await error("/shop", "x-canary: no\r\n", NOT_FOUND),
    'route not found: the nearest is default/canary: header x-canary: "no" is not "yes", at binds[0].listeners[0].routes[0]',
  );
  assert.equal(
    await error("/private", `authorization: ${SECRET}x\r\n`, NOT_FOUND),
    "route not found: the nearest is default/private: header authorization: <redacted> does not match, at binds[0].listeners[0].routes[1]",
  );
  assert.equal(
    await error("/admin", `x-role: guest\r\nauthorization: ${SECRET}\r\n`, DENIED),
    'authorization failed: deny rules[1] is true (request.path: "/admin", request.headers["x-role"]: "guest", request.headers.authorization: "<redacted>"), at binds[0].listeners[0].routes[2].policies.authorization.rules[1]',
  );
  assert.equal(
    await error("/fails", "x-role: guest\r\n", DENIED),
    'authorization failed: deny rules[2] cannot be evaluated (request.path: "/fails", request.headers["x-role"]: "guest"), at binds[0].listeners[0].routes[2].policies.authorization.rules[2]',
  );
  assert.equal(
    await error("/empty", "", "no healthy backends"),
    "no healthy backends: the backend has no endpoints, at binds[0].listeners[0].routes[3].backends[0]",
  );
  const everything = gateway.lines.map((line) => JSON.stringify(line)).join();
  assert.ok(!everything.includes(SECRET));
});

test("the policy that decided is found at its level: of the gateway, of a route that delegates, and before a route is known", async () => {
  await using service = await RawUpstream.answering(() => reply("no tea", [], "418 Teapot"));
  const denying = { authorization: { rules: [{ deny: 'request.path == "/gateway"' }] } };
  const policies = [
    { name: { name: "p" }, target: { gateway: { gatewayName: "default" } }, phase: "gateway", policy: denying },
  ];
  const extAuthz = { host: `127.0.0.1:${service.port}`, protocol: { http: {} } };
  const inner = [
    { name: "inner", policies: { directResponse: { status: 200 }, authorization: { rules: [{ allow: "false" }] } } },
  ];
  const routes = [
    {
      name: "outer",
      matches: [{ path: { exact: "/delegated" } }],
      policies: { authorization: { rules: [{ require: "true" }] } },
      backends: [{ routeGroup: "group" }],
    },
    {
      name: "asked",
      matches: [{ path: { exact: "/asked" } }],
      policies: { extAuthz, directResponse: { status: 200 } },
    },
    { name: "slow", matches: [{ path: { exact: "/slow" } }], policies: { timeout: { requestTimeout: "1ms" } } },
  ];
  await using silent = await RawUpstream.listen();
  Object.assign(routes[2] ?? {}, { backends: [{ host: `127.0.0.1:${silent.port}` }] });
  await using gateway = await TestGateway.start({
    policies,
    routeGroups: [{ name: "group", routes: inner }],
    binds: [{ port: 0, listeners: [{ hostname: "shop.example", routes }] }],
  });
  for (const [path, body, error] of [
    [
      "/gateway",
      DENIED,
      'authorization failed: deny rules[0] is true (request.path: "/gateway"), at policies[0].policy.authorization.rules[0]',
    ],
    [
      "/delegated",
      DENIED,
      "authorization failed: no allow rule is true, at routeGroups[0].routes[0].policies.authorization.rules[0]",
    ],
    [
      "/asked",
      "no tea",
      "external authorization failed: the service denies the request with status 418, at binds[0].listeners[0].routes[1].policies.extAuthz",
    ],
    ["/slow", "request timeout", "request timeout, at binds[0].listeners[0].routes[2].policies.timeout"],
  ] as const)
    assert.equal((await lineOf(gateway, path, "", body)).error, error);
});

test("the last event of a trace has the origin of the error", async () => {
  await using gateway = await LocalGateway.start(configuration("127.0.0.1:1"));
  const messages = await gateway.trace(async () => {
    const client = await RawPeer.connect(gateway.port());
    client.send("GET /admin HTTP/1.1\r\nHost: shop.example\r\nx-role: guest\r\nauthorization: y\r\n\r\n");
    await client.message();
    client.socket.destroy();
  });
  const finished = messages.at(-1);
  assert.ok(finished?.type === "requestFinished");
  const path = ["binds", 0, "listeners", 0, "routes", 2, "policies", "authorization", "rules", 1];
  assert.deepEqual(finished.origin, { path });
});

test("no listener for the host", async () => {
  await using gateway = await TestGateway.start(configuration("127.0.0.1:1"));
  const client = await RawPeer.connect(gateway.port());
  client.send("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n");
  assert.equal((await client.message()).body, "listener not found");
  const error = "listener not found: shop.test does not match shop.example";
  await gateway.until(() => gateway.lines.some((line) => line.error === error), error);
  client.socket.destroy();
});

test("reasons: code has the code of the error alone, and off nothing", async () => {
  for (const [reasons, expected] of [
    ["code", "TG_ROUTE_NOT_FOUND"],
    ["off", undefined],
  ] as const) {
    await using gateway = await TestGateway.start(configuration("127.0.0.1:1", { reasons }));
    const line = await lineOf(gateway, "/shop", "x-canary: no\r\n", NOT_FOUND);
    assert.deepEqual([line.error, line.reason], [expected, "NotFound"]);
    const client = await RawPeer.connect(gateway.port());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    await client.message();
    const rejected = (each: Readonly<Record<string, unknown>>): boolean => each["http.status"] === 400;
    await gateway.until(() => gateway.lines.some(rejected), "the rejected request");
    const { error } = gateway.lines.find(rejected) ?? {};
    assert.equal(error, reasons === "code" ? "TG_INVALID_REQUEST" : undefined);
    client.socket.destroy();
  }
});

test("a call that the backend has failed has an error, though its status is 200", async () => {
  await using server = await GrpcServer.start({
    "/test.Echo/Fail": { unary: () => Promise.reject(Object.assign(new Error("no voice"), { code: 5 })) },
    "/test.Echo/Say": { unary: (message: Buffer) => message },
  });
  const routes = [{ backends: [{ host: `127.0.0.1:${server.port}` }] }];
  const binds = [{ port: 0, listeners: [{ routes }] }];
  await using gateway = await TestGateway.start({ binds });
  using client = new GrpcClient(gateway.port());
  await client.unary("/test.Echo/Fail", "x");
  await client.unary("/test.Echo/Say", "x");
  const of = (path: string) => gateway.lines.find((line) => line["http.path"] === path);
  await gateway.until(() => of("/test.Echo/Fail") !== undefined && of("/test.Echo/Say") !== undefined, "both lines");
  assert.deepEqual(
    [of("/test.Echo/Fail")?.error, of("/test.Echo/Fail")?.["grpc.status"], of("/test.Echo/Say")?.error],
    ["the backend ended the call with grpc-status 5 (NOT_FOUND)", 5, undefined],
  );
  // It has no code of the gateway.
  await using brief = await TestGateway.start({ config: { logging: { reasons: "code" } }, binds });
  using other = new GrpcClient(brief.port());
  await other.unary("/test.Echo/Fail", "x");
  const failed = () => brief.lines.find((line) => line["http.path"] === "/test.Echo/Fail");
  await brief.until(() => failed() !== undefined, "the line");
  assert.deepEqual([failed()?.error, failed()?.["grpc.status"]], [undefined, 5]);
});

test("the origin of a denial is in the route that delegated, also if several delegate to one group", async () => {
  const rules = [{ deny: 'request.path != "/ok"' }];
  const parent = (path: string, policies: object): object => ({
    matches: [{ path: { pathPrefix: path } }],
    policies,
    backends: [{ routeGroup: "shared" }],
  });
  const routes = [
    parent("/a", { authorization: { rules } }),
    parent("/b", {}),
    parent("/c", { authorization: { rules } }),
  ];
  await using gateway = await TestGateway.start({
    binds: [{ port: 0, listeners: [{ hostname: "shop.example", routes }] }],
    routeGroups: [{ name: "shared", routes: [{ policies: { authorization: { rules } } }] }],
  });
  const places = { "/a/1": "binds[0].listeners[0].routes[0]", "/b/1": "routeGroups[0].routes[0]" };
  const again = { "/c/1": "binds[0].listeners[0].routes[2]", "/a/2": "binds[0].listeners[0].routes[0]" };
  for (const [path, place] of Object.entries({ ...places, ...again })) {
    const { error } = await lineOf(gateway, path, "", DENIED);
    assert.ok(String(error).endsWith(`, at ${place}.policies.authorization.rules[0]`), String(error));
  }
});
