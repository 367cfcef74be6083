import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { stringify } from "yaml";
import { invokeProgram } from "../cli/fixtures/invoke.ts";
import { tracegate } from "./commands.ts";

let folder = "";
/** Counts what reaches the network. */
let requests = 0;
const server = createServer((_request, response) => {
  requests++;
  response.end();
});

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tracegate-explain-"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const SECRET = "a-secret-value";

async function explain(routes: readonly object[], args: readonly string[], words: readonly string[]) {
  const file = join(folder, "gateway.yaml");
  await writeFile(file, stringify({ binds: [{ port: 8080, listeners: [{ routes }] }] }));
  return invokeProgram(tracegate, ["explain", "-f", file, ...args, "--", ...words]);
}

interface Explained {
  readonly outcomes: readonly {
    readonly given: Readonly<Record<string, string>>;
    readonly share: number;
    readonly status: number;
    readonly route?: string;
    readonly endpoint?: string;
    readonly reason: string;
    readonly error?: string;
  }[];
}

async function outcomesOf(routes: readonly object[], args: readonly string[], words: readonly string[]) {
  const { code, stdout, stderr } = await explain(routes, ["--json", ...args], words);
  assert.equal(stderr, "");
  return { code, outcomes: (JSON.parse(stdout) as Explained).outcomes };
}

const backend = (): object => ({ host: `127.0.0.1:${(server.address() as AddressInfo).port}` });
const on = (name: string, path: string, policies: object = {}): object => ({
  name,
  matches: [{ path: { pathPrefix: path } }],
  policies,
  backends: [backend()],
});

test("a tree for people: the route and why others lost, policies, what is sent, the response", async () => {
  const routes = [on("all", "/"), on("shop", "/shop", { requestHeaderModifier: { set: { "x-team": "shop" } } })];
  const words = ["POST", "http://shop.test/shop/cart?q=1", "-H", `authorization: ${SECRET}`, "-d", "k=v"];
  const { code, stdout } = await explain(routes, [], words);
  assert.equal(code, 0);
  const lines = stdout.split("\n");
  const { port } = server.address() as AddressInfo;
  assert.equal(lines[0], `POST /shop/cart?q=1 → 200 · route default/shop · endpoint 127.0.0.1:${port}`);
  assert.deepEqual(lines.slice(1, 3), [
    `✓ route shop  longer path  ${folder}/gateway.yaml:12`,
    `    ✗ route all  precedence: shop is more specific (longer path)  ${folder}/gateway.yaml:5`,
  ]);
  assert.ok(lines.includes(`✓ policy request_header_modifier  set.x-team=shop  ${folder}/gateway.yaml:17`));
  assert.ok(lines.some((line) => line.startsWith("✓ request POST http://shop.test/shop/cart?q=1  to backend ")));
  assert.ok(lines.includes("    x-team: shop") && lines.includes("    authorization: <redacted>"));
  assert.ok(lines.includes("✓ response 200"));
  assert.ok(!stdout.includes(SECRET));
  assert.equal(requests, 0);
});

test("a request that the gateway refuses: why, and exit code 1", async () => {
  const rules = [{ allow: 'request.headers["x-role"] == "ops"' }];
  const routes = [on("admin", "/admin", { authorization: { rules } })];
  const missing = await outcomesOf(routes, [], ["http://a/other"]);
  assert.equal(missing.code, 1);
  assert.deepEqual(
    [missing.outcomes[0]?.status, missing.outcomes[0]?.error],
    [404, "route not found: the nearest is default/admin: path: /other is not under prefix /admin"],
  );
  const denied = await outcomesOf(routes, [], ["http://a/admin"]);
  assert.deepEqual(
    [denied.code, denied.outcomes[0]?.status, denied.outcomes[0]?.error],
    [1, 403, "authorization failed: no allow rule is true"],
  );
  const allowed = await outcomesOf(routes, [], ["http://a/admin", "-H", "x-role: ops"]);
  assert.deepEqual([allowed.code, allowed.outcomes[0]?.status], [0, 200]);
  // A failed call has status 200.
  const call = await outcomesOf(routes, [], ["POST", "http://a/admin", "-H", "content-type: application/grpc"]);
  assert.deepEqual([call.code, call.outcomes[0]?.status], [1, 200]);
});

test("each response of a service is an outcome, unless it is assumed; caches and buckets start anew", async () => {
  for (const protocol of [{ http: {} }, { grpc: {} }]) {
    const extAuthz = { ...backend(), protocol, cache: { key: ["request.path"], ttl: "1m" } };
    const localRateLimit = [{ maxTokens: 1, fillInterval: "1h" }];
    const routes = [on("all", "/", { extAuthz, localRateLimit })];
    const { code, outcomes } = await outcomesOf(routes, [], ["http://a/"]);
    assert.deepEqual(
      outcomes.map(({ given, status, reason }) => [given, status, reason]),
      [
        [{ extAuthz: "allow" }, 200, "Upstream"],
        [{ extAuthz: "deny" }, 403, "ExtAuth"],
      ],
    );
    assert.equal(code, 0);
    const assumed = await outcomesOf(routes, ["--assume", "extAuthz=deny"], ["http://a/"]);
    assert.deepEqual([assumed.code, assumed.outcomes.map(({ status }) => status)], [1, [403]]);
  }
  assert.equal(requests, 0);
});

test("weighted backends are outcomes with their shares", async () => {
  const routes = [
    {
      name: "split",
      // Each outcome begins with all tokens.
      policies: { localRateLimit: [{ maxTokens: 1, fillInterval: "1h" }] },
      backends: [
        { ...backend(), weight: 9 },
        { host: "canary.test:80", weight: 1 },
        { host: "off.test:80", weight: 0 },
      ],
    },
  ];
  const { outcomes } = await outcomesOf(routes, [], ["http://a/"]);
  assert.deepEqual(
    outcomes.map(({ share, endpoint, status }) => [share, endpoint?.split(":")[0], status]),
    [
      [0.9, "127.0.0.1", 200],
      [0.1, "canary.test", 200],
    ],
  );
  const key = outcomes[1]?.given.backend ?? "";
  const one = await outcomesOf(routes, ["--assume", `backend=${key}`], ["http://a/"]);
  assert.deepEqual(
    one.outcomes.map(({ endpoint }) => endpoint),
    ["canary.test:80"],
  );
});

test("what services add to the request can be assumed", async () => {
  const grpc = { ...backend(), protocol: { grpc: {} } };
  const http = { ...backend(), protocol: { http: { includeResponseHeaders: ["x-user"] } } };
  const given = '={"headers":{"X-User":"me"}}';
  const rules = [{ require: 'request.headers["x-user"] == "me"' }];
  for (const extAuthz of [grpc, http]) {
    const routes = [on("all", "/", { extAuthz, authorization: { rules } })];
    const { outcomes } = await outcomesOf(routes, ["--assume", `extAuthz${given}`], ["http://a/"]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      [200],
    );
  }
  for (const requestBodyMode of ["none", "buffered", "fullDuplexStreamed"]) {
    const processingOptions = { requestHeaderMode: "send", requestBodyMode };
    const transformations = { request: { set: { "x-seen": 'request.headers["x-user"]' } } };
    const routes = [on("all", "/", { extProc: { ...backend(), processingOptions }, transformations })];
    const words = ["POST", "http://a/", "-d", "k=v"];
    const { stdout } = await explain(routes, ["--assume", `extProc${given}`], words);
    assert.match(stdout, /^ +x-user: me\n(.*\n)*✓ response 200/m, requestBodyMode);
    assert.match(stdout, /^ +x-seen: me$/m);
    const { outcomes } = await outcomesOf(routes, [], words);
    assert.deepEqual(
      outcomes.map((each) => [each.given.extProc, each.status]),
      [
        ["allow", 200],
        ["fail", 500],
      ],
    );
    const denied = await outcomesOf(routes, ["--assume", 'extProc={"status":403}'], words);
    assert.deepEqual(denied.outcomes[0]?.status, 403);
  }
});

test("the response of the backend is assumed: retries happen as they would", async () => {
  const routes = [on("all", "/", { retry: { attempts: 2, backoff: "1ms", codes: [503] } })];
  const { code, stdout } = await explain(routes, ["--assume", "response=503"], ["http://a/"]);
  assert.equal(stdout.match(/✓ endpoint /g)?.length, 3);
  assert.match(stdout, /^if response=\{"status":503\}:$/m);
  const fields = '{"status":201,"headers":{"x-from":"backend"},"body":"hello"}';
  const other = await explain(routes, ["--assume", `response=${fields}`], ["http://a/"]);
  assert.match(other.stdout, /✓ response 201\n(.*\n)* {4}x-from: backend\n/);
  // It is the backend that fails, not the gateway that refuses.
  assert.equal(code, 0);
});

const mistakes: readonly [args: readonly string[], words: readonly string[], error: string, hint: string][] = [
  [[], ["ftp://a/"], "the scheme ftp cannot be explained", "write a URL that begins with http:// or https://"],
  [[], ["http://"], '"http://" is not a URL', "write a URL such as http://shop.example/cart"],
  [[], ["http://a:81/"], "the configuration has no bind for http on port 81", "write http://a:8080"],
  [[], ["https://a/"], "the configuration has no bind for https on port 443", "none of its binds serves https"],
  [[], ["http://a/", "-H", "x"], '-H "x" is not a header field', "write -H 'name: value'"],
  [
    [],
    ["http://a/", "--compressed", "x"],
    "unknown option --compressed of the request",
    "write it as for curl: [METHOD] URL [-X METHOD] [-H 'name: value'] [-d BODY]",
  ],
  [[], ["http://a/x y"], '"http://a/x y" has a character that a URL cannot have', "encode it, such as a space as %20"],
  [[], ["GET /\r\n", "http://a/"], '"GET /\\r\\n" is not a method', "write one such as POST"],
  [
    ["--assume", "networkExtAuthz=no"],
    ["http://a/"],
    'networkExtAuthz cannot be "no"',
    "write --assume networkExtAuthz=allow or networkExtAuthz=deny",
  ],
  [
    ["--assume", "extAuthz=deny"],
    ["http://a/"],
    "nothing depends on the assumption extAuthz",
    "leave out --assume extAuthz=deny, or check which route the request gets",
  ],
  [["--source", "x"], ["http://a/"], "x is not an IP address", "write an address such as 192.0.2.7"],
];
for (const [args, words, error, hint] of mistakes)
  test(`mistake: ${error}`, async () => {
    const { code, stdout, stderr } = await explain([on("all", "/")], args, words);
    assert.deepEqual([code, stdout, stderr], [2, "", `tracegate: ${error}\nTry: ${hint}\n`]);
  });

test("a configuration that is not valid is reported with its position", async () => {
  const { code, stderr } = await explain([{ name: "r", backends: [{ hots: "a:80" }] }], [], ["http://a/"]);
  assert.equal(code, 1);
  assert.match(stderr, /the configuration is not valid\n.*gateway\.yaml:\d+:\d+: error: .*hots: unknown field/);
});

test("the path is sent as it is written, and what a gateway rejects is rejected", async () => {
  const routes = [on("all", "/")];
  for (const [target, status] of [
    ["/a/../b", 400],
    ["/%2e%2e/b", 400],
    ["/a//b", 200],
  ] as const) {
    const { outcomes } = await outcomesOf(routes, [], [`http://a${target}`]);
    assert.equal(outcomes[0]?.status, status, target);
  }
});

test("credentials of a URL are sent, and secrets of its query are not shown", async () => {
  const rules = [{ require: 'request.headers.authorization.startsWith("Basic bWU6")' }];
  const routes = [on("all", "/", { authorization: { rules } })];
  const { code, stdout } = await explain(routes, [], [`http://me:pw@a/x?token=${SECRET}`]);
  assert.equal(code, 0);
  assert.match(stdout, /^GET \/x\?token=<redacted> → 200/);
  assert.ok(!stdout.includes(SECRET) && !stdout.includes("bWU6cHc="));
});

test("an authorization service for connections is a choice too", async () => {
  for (const protocol of [{ http: {} }, { grpc: {} }]) {
    const file = join(folder, "network.yaml");
    const frontendPolicies = { networkExtAuthz: { ...backend(), protocol } };
    await writeFile(
      file,
      stringify({ frontendPolicies, binds: [{ port: 8080, listeners: [{ routes: [on("all", "/")] }] }] }),
    );
    const { code, stdout } = await invokeProgram(tracegate, ["explain", "-f", file, "--json", "--", "http://a/"]);
    const { outcomes } = JSON.parse(stdout) as Explained;
    assert.deepEqual(
      outcomes.map(({ given, status }) => [given.networkExtAuthz, status]),
      [
        ["allow", 200],
        ["deny", undefined],
      ],
    );
    assert.match(outcomes[1]?.error ?? "", /^external authorization failed: /);
    assert.equal(code, 0);
  }
});

test("rules see the client's address that --source gives", async () => {
  const rules = [{ deny: 'source.address == "192.0.2.7"' }];
  const routes = [on("all", "/", { authorization: { rules } })];
  assert.equal((await outcomesOf(routes, ["--source", "192.0.2.7"], ["http://a/"])).outcomes[0]?.status, 403);
  assert.equal((await outcomesOf(routes, [], ["http://a/"])).outcomes[0]?.status, 200);
});
