import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { stringify } from "yaml";
import { noOpenssl, TestCa } from "../../test/helpers/certificates.ts";
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

interface Refused {
  readonly error: { readonly hint: string };
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
  assert.deepEqual(lines.slice(1, 4), [
    `✓ listener listener0  any host  ${folder}/gateway.yaml:4`,
    `✓ route shop  takes precedence  ${folder}/gateway.yaml:12`,
    `    ✗ route all  matches too; precedence: longer path  ${folder}/gateway.yaml:5`,
  ]);
  assert.ok(lines.includes(`✓ policy requestHeaderModifier  set.x-team=shop  ${folder}/gateway.yaml:17`));
  assert.ok(lines.some((line) => line.startsWith("✓ request POST http://shop.test/shop/cart?q=1")));
  assert.ok(lines.includes("    x-team: shop") && lines.includes("    authorization: <redacted>"));
  assert.ok(lines.includes("✓ response 200  by the backend; the gateway adds date"));
  assert.ok(!stdout.includes(SECRET));
  assert.equal(requests, 0);
});

test("header values are shown as they were written, in any script", async () => {
  const rules = [{ deny: 'request.headers["x-name"] == "שלום"' }];
  const policies = { authorization: { rules }, requestHeaderModifier: { set: { "x-greeting": "grüß" } } };
  const headers = [{ name: "x-city", value: { exact: "Köln" } }];
  const routes = [{ ...on("cologne", "/"), matches: [{ headers }] }, on("all", "/", policies)];
  const { stdout } = await explain(routes, [], ["http://a/", "-H", "x-city: Zürich", "-H", "x-name: أهلا"]);
  for (const text of [
    '✗ route cologne  header x-city: "Zürich" is not "Köln"',
    'request.headers["x-name"] → "أهلا"',
    "    x-city: Zürich\n",
    "    x-name: أهلا\n",
    "    x-greeting: grüß\n",
  ])
    assert.ok(stdout.includes(text), `${text} in ${stdout}`);
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

test("policies of one kind in several phases, and in shadow, are choices of their own", async () => {
  const extAuthz = { ...backend(), protocol: { grpc: {} } };
  const shadowed = { shadow: true, ...backend() };
  const file = join(folder, "phases.yaml");
  const routes = [{ name: "all", policies: { extAuthz }, backends: [{ ...backend(), policies: { extAuthz } }] }];
  const listeners = [{ policies: { extAuthz: shadowed }, routes }];
  await writeFile(file, stringify({ binds: [{ port: 8080, listeners }] }));
  const run = async (...assume: string[]) => {
    const args = assume.flatMap((each) => ["--assume", each]);
    return invokeProgram(tracegate, ["explain", "-f", file, ...args, "--json", "--", "http://a/"]);
  };
  const given = async (...assume: string[]) =>
    (JSON.parse((await run(...assume)).stdout) as Explained).outcomes.map((each) => [each.given, each.status]);
  const shadow = { "extAuthz@shadow": "allow" };
  assert.deepEqual(await given("extAuthz@shadow=allow"), [
    [{ ...shadow, "extAuthz@route": "allow", "extAuthz@backend": "allow" }, 200],
    [{ ...shadow, "extAuthz@route": "deny" }, 403],
    [{ ...shadow, "extAuthz@route": "allow", "extAuthz@backend": "deny" }, 403],
  ]);
  assert.deepEqual(await given("extAuthz=allow", "extAuthz@backend=deny"), [
    [{ extAuthz: "allow", "extAuthz@backend": "deny" }, 403],
  ]);
  const hint = async (...assume: string[]) => (JSON.parse((await run(...assume)).stderr) as Refused).error.hint;
  assert.equal(
    await hint("extAuthz@gateway=deny"),
    "write --assume extAuthz@shadow=allow, extAuthz@route=allow, extAuthz@backend=allow, extAuthz@shadow=deny, extAuthz@route=deny or extAuthz@backend=deny",
  );
  assert.match(await hint("extAuthz@gateway=deny", "extAuthz=allow"), /^leave out --assume extAuthz@gateway=deny, /);
});

test("an alternative of satisfy in shadow is a choice of its own", async () => {
  const apiKey = { location: { header: { name: "x-key" } }, keys: [{ key: "k" }] };
  const policies = { satisfy: { shadow: true, any: [{ apiKey }] }, apiKey: { mode: "strict", ...apiKey } };
  const routes = [{ name: "all", policies, backends: [backend()] }];
  const request = ["http://a/", "-H", "x-key: <redacted>"];
  const { outcomes } = await outcomesOf(routes, ["--assume", "apiKey@shadow=invalid"], request);
  assert.deepEqual(
    outcomes.map(({ given, status }) => [given, status]),
    [
      [{ "apiKey@shadow": "invalid", "apiKey@route": "valid" }, 200],
      [{ "apiKey@route": "invalid" }, 401],
    ],
  );
});

test("endpoints can be assumed to be healthy, unhealthy, or not there", async () => {
  const workload = (n: number) => ({
    ...{ uid: `w${n}`, name: `w${n}`, namespace: "default", workloadIps: [`10.0.0.${n}`] },
    services: { "default/shop.test": { 80: 8080 } },
  });
  const services = [{ name: "shop", namespace: "default", hostname: "shop.test", vips: [], ports: { 80: 8080 } }];
  const backends = [{ service: { name: "default/shop.test", port: 80 } }];
  const file = join(folder, "services.yaml");
  const listeners = [{ routes: [{ name: "all", backends }] }];
  await writeFile(
    file,
    stringify({ services, workloads: [workload(1), workload(2)], binds: [{ port: 8080, listeners }] }),
  );
  const run = async (...assume: string[]) => {
    const args = assume.flatMap((each) => ["--assume", each]);
    const { stdout, stderr } = await invokeProgram(tracegate, ["explain", "-f", file, ...args, "--", "http://a/"]);
    return stdout === "" ? stderr : stdout;
  };
  const chosen = "✓ endpoint 10.0.0.1:8080  of default/shop.test:80, status 200";
  assert.ok((await run("endpoints=healthy")).includes(`\n${chosen}\n    – endpoint 10.0.0.2:8080  not chosen\n`));
  const next = await run("response@10.0.0.1:8080=refused");
  assert.match(next, /^GET \/ → 200 .* endpoint 10\.0\.0\.2:8080$/m);
  assert.match(next, /^✗ endpoint 10\.0\.0\.1:8080 {2}of .*connection refused: that is assumed$/m);
  const ill = "unhealthy: that is assumed";
  const all = await run("endpoints=unhealthy");
  assert.ok(all.includes(`\n${chosen}, ${ill}\n    ✗ endpoint 10.0.0.2:8080  ${ill}\n`), all);
  const one = await run('endpoints={"10.0.0.1:8080":"unhealthy"}');
  assert.ok(one.includes(`\n${chosen.replace(".1:", ".2:")}\n    ✗ endpoint 10.0.0.1:8080  ${ill}\n`), one);
  const none = await run("endpoints=none");
  assert.match(none, /^if endpoints=none:\nGET \/ → 503 · route default\/all · no healthy backends/);
  assert.equal(
    await run('endpoints={"10.0.0.7:8080":"unhealthy"}'),
    "tracegate: no backend of the request has an endpoint 10.0.0.7:8080\nTry: write 10.0.0.1:8080 or 10.0.0.2:8080\n",
  );
  await writeFile(
    file,
    stringify({
      binds: [{ port: 8080, listeners: [{ routes: [on("none", "/", { directResponse: { status: 200 } })] }] }],
    }),
  );
  assert.match(await run("endpoints=unhealthy"), /^tracegate: nothing depends on the assumption endpoints\n/);
  assert.match(
    await run("endpoints=ill"),
    /^tracegate: endpoints cannot be "ill"\nTry: write --assume endpoints=healthy, /,
  );
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

test("a named backend is called by its key, whatever its name", async () => {
  const file = join(folder, "named.yaml");
  const names = ["backend1", "other"];
  const backends = names.map((name) => ({ name, host: `${name}.test:80` }));
  const routes = [
    { name: "r", backends: [...names.map((name) => ({ backend: `/${name}` })), { host: "own.test:80" }] },
  ];
  await writeFile(file, stringify({ binds: [{ port: 8080, listeners: [{ routes }] }], backends }));
  const { stdout } = await invokeProgram(tracegate, ["explain", "-f", file, "--json", "--", "http://a/"]);
  assert.deepEqual(
    (JSON.parse(stdout) as Explained).outcomes.map(({ given }) => given.backend),
    ["/backend1", "/other", "own.test:80"],
  );
});

test("a named backend that a route has twice is two backends, with the policies and the share of each", async () => {
  const file = join(folder, "twice.yaml");
  const use = (weight: number, team: string): object => {
    return { backend: "/a", weight, policies: { responseHeaderModifier: { set: { "x-team": team } } } };
  };
  const routes = [{ name: "r", backends: [use(0, "none"), use(1, "one"), use(3, "two")] }];
  const backends = [{ name: "a", host: "a.test:80" }];
  await writeFile(file, stringify({ binds: [{ port: 8080, listeners: [{ routes }] }], backends }));
  const run = async (...args: string[]) => {
    const { stdout } = await invokeProgram(tracegate, ["explain", "-f", file, ...args, "--json", "--", "http://a/"]);
    return (JSON.parse(stdout) as Explained).outcomes.map((outcome) => [
      outcome.given.backend,
      outcome.share,
      /x-team=(\w+)/.exec(JSON.stringify(outcome))?.[1],
    ]);
  };
  const [one, two] = [
    ["/a", 0.25, "one"],
    ["/a#2", 0.75, "two"],
  ];
  assert.deepEqual(await run(), [one, two]);
  assert.deepEqual(await run("--assume", "backend=/a#2"), [two]);
});

test("routes that delegate, step by step: the group, its routes, and a choice of a backend at each", async () => {
  const split = (name: string, backends: readonly object[]) => ({ name, backends });
  const listeners = [
    {
      routes: [
        split("outer", [
          { routeGroup: "a", weight: 1 },
          { routeGroup: "b", weight: 3 },
        ]),
      ],
    },
  ];
  const routeGroups = [
    { name: "a", routes: [{ name: "middle", backends: [{ routeGroup: "b" }] }] },
    {
      name: "b",
      routes: [
        { name: "no", matches: [{ path: { pathPrefix: "/other" } }], backends: [backend()] },
        split("end", [
          { host: "one.test:80", weight: 1 },
          { host: "two.test:80", weight: 1 },
        ]),
      ],
    },
  ];
  const file = join(folder, "groups.yaml");
  await writeFile(file, stringify({ binds: [{ port: 8080, listeners }], routeGroups }));
  const run = async (...args: string[]) =>
    invokeProgram(tracegate, ["explain", "-f", file, ...args, "--", "http://a/"]);
  const { outcomes } = JSON.parse((await run("--json")).stdout) as Explained;
  assert.deepEqual(
    outcomes.map(({ given, share, endpoint }) => [given["backend@default/outer"], share, endpoint]),
    [
      ["a", 0.125, "one.test:80"],
      ["b", 0.375, "one.test:80"],
      ["a", 0.125, "two.test:80"],
      ["b", 0.375, "two.test:80"],
    ],
  );
  const { stdout } = await run("--assume", "backend@default/outer=a", "--assume", "backend=two.test:80");
  assert.deepEqual(stdout.split("\n").slice(0, 13), [
    "if backend@default/outer=a, backend=two.test:80 (12.5 % of requests):",
    "GET / → 200 · route default/end · endpoint two.test:80",
    `✓ listener listener0  any host  ${file}:4`,
    `✓ route outer  the only route that matches  ${file}:5`,
    "✓ backend a  25 % by weight",
    "    – backend b  75 % by weight",
    `✓ group a  route outer delegates to it  ${file}:12`,
    `✓ route middle  the only route that matches  ${file}:14`,
    `✓ group b  route middle delegates to it  ${file}:17`,
    `✓ route end  the only route that matches  ${file}:25`,
    `    ✗ route no  path: / is not under prefix /other  ${file}:19`,
    "✓ backend two.test:80  50 % by weight",
    "    – backend one.test:80  50 % by weight",
  ]);
  const wrong = await run("--assume", "backend=three.test:80");
  assert.equal(
    wrong.stderr,
    "tracegate: the route has no backend three.test:80\nTry: write --assume backend@default/outer=a, backend@default/end=one.test:80, backend@default/outer=b or backend@default/end=two.test:80\n",
  );
  // Where the name says which choice is meant, only its values are of use.
  assert.equal(
    (await run("--assume", "backend@default/outer=c")).stderr,
    "tracegate: the route has no backend c\nTry: write --assume backend@default/outer=a or backend@default/outer=b\n",
  );
  const other = await run("--assume", "backend@default/inner=a");
  assert.match(
    other.stderr,
    /^tracegate: nothing depends on backend@default\/inner=a\nTry: write --assume backend@default\/outer=a, /,
  );
  const cases = join(folder, "group-cases.yaml");
  const request = { url: "http://a/" };
  const chosen = { "backend@default/outer": "a", "backend@default/end": "two.test:80" };
  const known = [{ name: "one", request, assume: chosen, expect: { backend: "two.test:80" } }];
  await writeFile(cases, stringify({ cases: known }));
  const checked = await invokeProgram(tracegate, ["check", "-f", file, "--expect", cases]);
  assert.match(checked.stdout, /\n1 case: 1 passed\n$/);
});

test("of routes that delegate to one that responds itself, only the choices that matter are outcomes", async () => {
  const file = join(folder, "unreached.yaml");
  const two = [backend(), { host: "other.test:80" }];
  const routes = [{ name: "outer", backends: [{ routeGroup: "a" }, { routeGroup: "b" }] }];
  const policies = { authorization: { rules: [{ deny: "true" }] } };
  const routeGroups = ["a", "b"].map((name) => ({ name, routes: [{ name: `in-${name}`, policies, backends: two }] }));
  await writeFile(file, stringify({ binds: [{ port: 8080, listeners: [{ routes }] }], routeGroups }));
  const { stdout } = await invokeProgram(tracegate, ["explain", "-f", file, "-o", "json", "--", "http://a/"]);
  const { outcomes } = JSON.parse(stdout) as Explained;
  assert.deepEqual(
    outcomes.map(({ given, share, route, status }) => [given, share, route, status]),
    [
      [{ backend: "a" }, 0.5, "default/in-a", 403],
      [{ backend: "b" }, 0.5, "default/in-b", 403],
    ],
  );
});

test("a policy in force that leaves no event is one that passed, also if it is the last", async () => {
  const { stdout } = await explain([on("all", "/", { retry: { attempts: 2, codes: [503] } })], [], ["http://a/"]);
  assert.match(stdout, /^✓ policy retry {2}attempts=2 /m);
});

test("a retry that changes the backend is a choice of its own", async () => {
  const backends = ["one.test:80", "two.test:80", "three.test:80"].map((host) => ({ host, weight: 1 }));
  const policies = { retry: { attempts: 1, codes: [503], otherBackends: true } };
  const { outcomes } = await outcomesOf(
    [{ name: "r", policies, backends }],
    ["--assume", "response=503"],
    ["http://a/"],
  );
  const ways = outcomes.map(
    ({ given, share }) => `${given["backend@default/r"]} ${given["backend@default/r#2"]} ${share.toFixed(3)}`,
  );
  assert.deepEqual(ways.toSorted(), [
    "one.test:80 three.test:80 0.167",
    "one.test:80 two.test:80 0.167",
    "three.test:80 one.test:80 0.167",
    "three.test:80 two.test:80 0.167",
    "two.test:80 one.test:80 0.167",
    "two.test:80 three.test:80 0.167",
  ]);
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

test("a tree does not repeat what it has in common with the one before", async () => {
  const routes = [on("all", "/", { extAuthz: { host: "127.0.0.1:1", protocol: { http: {} } } })];
  const { stdout } = await explain(routes, [], ["http://a/"]);
  const [, denied = ""] = stdout.split("if extAuthz=deny:\n");
  const [, , after = "", next = ""] = denied.split("\n");
  assert.match(denied.split("\n")[1] ?? "", /^– as above, up to route all$/);
  assert.match(after, /^✗ policy extAuthz {2}the service denies the request/);
  assert.match(next, /^✗ response 403 {2}by the gateway$/);
});

test("the response of the backend is assumed: retries happen as they would", async () => {
  const routes = [on("all", "/", { retry: { attempts: 2, backoff: "1ms", codes: [503] } })];
  const { code, stdout } = await explain(routes, ["--assume", "response=503"], ["http://a/"]);
  assert.equal(stdout.match(/✓ endpoint /g)?.length, 3);
  assert.match(stdout, /^if response=503:$/m);
  // Of another attempt, what is new in it.
  assert.match(stdout, /✓ request GET http:\/\/a\/ {2}again with\n {4}x-retry-attempt: 2\n✓ endpoint/);
  const fields = '{"status":201,"headers":{"x-from":"backend"},"body":"hello"}';
  const other = await explain(routes, ["--assume", `response=${fields}`], ["http://a/"]);
  assert.match(other.stdout, /✓ response 201 .*\n(.*\n)* {4}x-from: backend\n/);
  // It is the backend that fails, not the gateway that refuses.
  assert.equal(code, 0);
});

test("a backend can be assumed to fail: it refuses connections, closes them, or does not respond in time", async () => {
  const limits = { timeout: { requestTimeout: "10s", backendRequestTimeout: "4s" } };
  const retried = [on("all", "/", { ...limits, retry: { attempts: 3, backoff: "1ms", codes: [503] } })];
  const attemptsOf = (text: string) => text.match(/✗ endpoint /g)?.length;
  const of = async (routes: Parameters<typeof explain>[0], answer: string) =>
    (await explain(routes, ["--assume", `response=${answer}`], ["http://a/"])).stdout;
  const refused = await of(retried, "refused");
  assert.match(refused, /→ 503 .* upstream call failed: connection refused: that is assumed\n/);
  assert.equal(attemptsOf(refused), 4);
  const reset = await of([on("all", "/", {})], "reset");
  assert.match(reset, /→ 503 .* upstream call failed: the upstream closed the connection\n/);
  // Nothing takes that long: 4 + 4 s, then the rest of the 10 s.
  const late = await of(retried, "timeout");
  assert.match(late, /→ 504 .* request timeout\n/);
  assert.equal(attemptsOf(late), 3);
  assert.equal(late.match(/✗ endpoint \S+ {2}upstream call timeout$/gm)?.length, 2);
  const { code, stderr } = await explain([on("all", "/", {})], ["--assume", "response=timeout"], ["http://a/"]);
  assert.equal(code, 2);
  assert.match(
    stderr,
    /^tracegate: the route default\/all waits .* because it has no timeout\nTry: .*give the route a timeout/,
  );
});

test("a client's certificate can be assumed without its key", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  using other = new TestCa("another CA");
  const { certFile: cert, keyFile: key } = ca.issue("a.test");
  const tls = { cert, key, root: ca.certFile };
  const rules = ['source.subjectCn == "billing"'];
  const routes = [on("all", "/", { authorization: { rules } })];
  const file = join(folder, "mtls.yaml");
  await writeFile(file, stringify({ binds: [{ port: 8443, listeners: [{ protocol: "HTTPS", tls, routes }] }] }));
  const of = async (path: string, ...words: string[]) => {
    const assume = path === "" ? [] : ["--assume", `clientCertificate=${path}`];
    const args = ["explain", "-f", file, ...assume, "--", "https://a.test", ...words];
    const { stdout, stderr } = await invokeProgram(tracegate, args);
    return stdout === "" ? stderr : stdout;
  };
  const billing = ca.issue("billing");
  // A key in the same file is not needed, and goes nowhere.
  const both = join(folder, "both.pem");
  await writeFile(both, billing.key + billing.cert);
  for (const path of [billing.certFile, both])
    assert.match(await of(path), /^if clientCertificate=CN=billing:\nGET \/ → 200 /);
  assert.match(await of(ca.issue("shop").certFile), /^if .*CN=shop:\nGET \/ → 403 /);
  const rejected = await of(other.issue("billing").certFile);
  assert.match(rejected, /→ refused · .* certificate was rejected: UNABLE_TO_GET_ISSUER_CERT_LOCALLY\n/);
  assert.match(await of(billing.keyFile), /has no certificate\nTry: write the path of a file/);
  const noKey =
    "tracegate: the client's certificate has no private key\nTry: add its key, or assume clientCertificate, which needs none";
  assert.ok((await of("", "--cert", billing.certFile)).startsWith(noKey));
  const cases = join(folder, "mtls-cases.yaml");
  const request = { url: "https://a.test/" };
  const expect = { status: 200 };
  const known = [
    { name: "assumed", request, assume: { clientCertificate: basename(both) }, expect },
    { name: "with its key", request: { ...request, certificate: billing.certFile, key: billing.keyFile }, expect },
    { name: "by HTTP/2", request: { ...request, certificate: basename(both), version: "2" }, expect },
    { name: "without its key", request: { ...request, certificate: billing.certFile }, expect },
  ];
  await writeFile(cases, stringify({ cases: known.slice(0, 3) }));
  const check = () => invokeProgram(tracegate, ["check", "-f", file, "--expect", cases]);
  assert.match((await check()).stdout, /\n3 cases: 3 passed\n$/);
  await writeFile(cases, stringify({ cases: known }));
  const { stdout, stderr } = await check();
  assert.match(stdout + stderr, /mtls-cases\.yaml:\d+:\d+: error: cases\[3\]\.request\.certificate: .* no private key/);
});

test("around what happens: listeners that lost, policies in force and not reached, the split, what changes in the response", async () => {
  const policies = {
    timeout: { requestTimeout: "3s" },
    authorization: { rules: [{ allow: 'request.headers["x-role"] == "ops"' }] },
    retry: { attempts: 2, codes: [503] },
    requestHeaderModifier: { set: { "x-team": "shop" } },
    responseHeaderModifier: { set: { "x-res": "1" }, remove: ["server"] },
  };
  const backends = [
    { ...backend(), weight: 3 },
    { host: "canary.test:80", weight: 1 },
  ];
  const listeners = [
    { name: "any", routes: [] },
    { name: "shop", hostname: "*.shop.test", routes: [{ name: "all", policies, backends }] },
    { name: "other", hostname: "other.test", routes: [] },
  ];
  const file = join(folder, "tree.yaml");
  await writeFile(file, stringify({ binds: [{ port: 8080, listeners }] }));
  const run = async (...words: string[]): Promise<string[]> => {
    const response = 'response={"headers":{"server":"b"}}';
    const assume = words.length > 1 ? ["--assume", response] : [];
    const { stdout } = await invokeProgram(tracegate, ["explain", "-f", file, ...assume, "--", ...words]);
    return stdout.split("\n");
  };
  const listener = [
    `✓ listener shop  host *.shop.test  ${file}:6`,
    `    ✗ listener any  any host, which *.shop.test precedes  ${file}:4`,
    `    ✗ listener other  a.shop.test is not other.test  ${file}:33`,
  ];
  const refused = await run("http://a.shop.test/");
  // The backend does not matter, so there is one outcome.
  assert.match(refused[0] ?? "", /^GET \/ → 403 /);
  assert.deepEqual(refused.slice(1, 4), listener);
  const at = refused.indexOf(`✗ policy authorization  no allow rule is true  ${file}:13`);
  assert.deepEqual(refused.slice(at + 3, at + 5), [
    `– policy retry  not reached  ${file}:16`,
    `– policy requestHeaderModifier  not reached  ${file}:20`,
  ]);
  const passed = await run("http://a.shop.test/", "-H", "x-role: ops");
  assert.ok(passed.includes(`✓ policy retry  attempts=2 backoff=0s codes=[503]  ${file}:16`));
  const split = passed.findIndex((line) => line.startsWith("✓ backend "));
  assert.match(passed[split] ?? "", /^✓ backend 127\.0\.0\.1:\d+ {2}75 % by weight$/);
  assert.equal(passed[split + 1], "    – backend canary.test:80  25 % by weight");
  assert.ok(passed.includes("✓ response 200  by the backend; the gateway adds x-res, date, removes server"));
});

test("connections of TCP, TLS and UDP, connections that are refused, and bytes that are no request", async () => {
  const route = (name: string, host: string, hostnames: readonly string[] = []): object => ({
    name,
    hostnames,
    backends: [{ host }],
  });
  const network = {
    networkAuthorization: { rules: [{ deny: 'source.address == "192.0.2.7"' }] },
  };
  const binds = [
    { port: 5432, listeners: [{ name: "db", protocol: "TCP", tcpRoutes: [route("db", "db.test:5432")] }] },
    {
      port: 443,
      listeners: [
        {
          ...{ name: "pass", protocol: "TLS", hostname: "*.pass.test" },
          tcpRoutes: [route("a", "a.test:443", ["a.pass.test"]), route("any", "b.test:443")],
        },
      ],
    },
    { port: 53, listeners: [{ name: "dns", protocol: "UDP", tcpRoutes: [route("dns", "dns.test:53")] }] },
    { port: 80, listeners: [{ routes: [on("all", "/")] }] },
  ];
  const file = join(folder, "connections.yaml");
  await writeFile(file, stringify({ frontendPolicies: network, binds }));
  const run = async (...words: string[]): Promise<string> => {
    const { code, stdout } = await invokeProgram(tracegate, ["explain", "-f", file, ...words]);
    return `${stdout}${code}`;
  };
  assert.equal(
    await run("--", "tcp://anything:5432"),
    `tcp://anything:5432 → connected · route default/db · endpoint db.test:5432
✓ listener db  the only one of its port  ${file}:8
✓ route db  any connection  ${file}:11
✓ endpoint db.test:5432  connected
0`,
  );
  assert.equal(
    await run("--", "tls://a.pass.test"),
    `tls://a.pass.test → connected · route default/a · endpoint a.test:443
✓ listener pass  server name *.pass.test  ${file}:17
✓ route a  server name a.pass.test  ${file}:21
    ✗ route any  matches too; precedence: server name before any  ${file}:26
    and 1 more route
✓ endpoint a.test:443  connected
0`,
  );
  assert.match(await run("--", "tls://b.pass.test"), /· route default\/any · endpoint b\.test:443\n/);
  const none = "no TLS listener match for other.test";
  assert.equal(
    await run("--", "tls://other.test"),
    `tls://other.test → refused · ${none}
✗ listener none  no listener has this server name
    ✗ listener pass  other.test is not *.pass.test  ${file}:17
1`,
  );
  assert.equal(
    await run("--", "udp://anything:53", "-d", "question"),
    `udp://anything:53 → forwarded · route default/dns · endpoint dns.test:53
✓ listener dns  the only one of its port  ${file}:32
✓ route dns  any connection  ${file}:35
✓ endpoint dns.test:53  gets the datagram
0`,
  );
  for (const [url, result] of [
    ["tcp://anything:5432", "refused"],
    ["tls://a.pass.test", "refused"],
    ["udp://anything:53", "dropped"],
    ["http://a/", "refused"],
  ] as const) {
    const text = await run("--source", "192.0.2.7", "--", url);
    const why = 'authorization failed: deny rules[0] is true (source.address: "192.0.2.7")';
    assert.ok(text.includes(`→ ${result} · ${why}\n`), text);
    assert.ok(text.endsWith(`\n✗ connection from 192.0.2.7:50000  ${why}  ${file}:4\n1`), text);
  }
  const malformed = "Content-Length is not one decimal number below 2^53";
  assert.equal(
    await run("--", "http://a/", "-H", "content-length: x"),
    `GET / → 400 · ${malformed}\n✗ request from 127.0.0.1:50000  ${malformed}\n1`,
  );
});

const mistakes: readonly [args: readonly string[], words: readonly string[], error: string, hint: string][] = [
  [
    [],
    ["ftp://a/"],
    "the scheme ftp cannot be explained",
    "write a URL that begins with http://, https://, tcp://, tls:// or udp://",
  ],
  [[], ["http://"], '"http://" is not a URL', "write a URL such as http://shop.example/cart"],
  [[], ["http://a:81/"], "the configuration has no bind for http on port 81", "write http://a:8080"],
  [[], ["https://a/"], "the configuration has no bind for https on port 443", "none of its binds serves https"],
  [[], ["https://a:8080/"], "the configuration has no bind for https on port 8080", "write http://a:8080"],
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
  [["--assume", "random@route=0.5"], ["http://a/"], 'nothing can be assumed about "random@route"', "write random"],
  [
    ["--assume", "extAuthz@rout=deny"],
    ["http://a/"],
    'nothing can be assumed about "extAuthz@rout"',
    "write extAuthz or extAuthz@gateway or extAuthz@route or extAuthz@backend or extAuthz@shadow",
  ],
  [
    ["--assume", "extAuthz=deny"],
    ["http://a/"],
    "nothing depends on the assumption extAuthz",
    "leave out --assume extAuthz=deny, or check which route the request gets",
  ],
  [
    [],
    ["tcp://a:8080", "-H", "x: y"],
    "a connection of tcp has neither a method nor header fields",
    "write tcp://a:8080, and bytes that the client sends as the body",
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

test("UDP: its real port and session decide, with services, weights and what they refuse", async () => {
  const file = join(folder, "udp.yaml");
  const run = async (frontendPolicies: object, backends: readonly object[], data = "x", source = "127.0.0.1") => {
    const listeners = [{ name: "dns", protocol: "UDP", tcpRoutes: [{ name: "dns", backends }] }];
    await writeFile(file, stringify({ frontendPolicies, binds: [{ port: 53, listeners }] }));
    const words = ["explain", "-f", file, "--json", "--source", source, "--", "udp://a:53", "-d", data];
    const { outcomes } = JSON.parse((await invokeProgram(tracegate, words)).stdout) as Explained;
    return outcomes.map(({ given, share, endpoint, error }) => [given, share, error ?? endpoint]);
  };
  const one = { host: "one.test:53" };
  assert.deepEqual(await run({ networkExtAuthz: { ...backend(), protocol: { grpc: {} } } }, [one]), [
    [{ networkExtAuthz: "allow" }, 1, "one.test:53"],
    [{ networkExtAuthz: "deny" }, 1, "external authorization failed: the service denied with 403"],
  ]);
  const two = { host: "two.test:53", weight: 1 };
  assert.deepEqual(await run({}, [{ ...one, weight: 3 }, two]), [
    [{ backend: "one.test:53" }, 0.75, "one.test:53"],
    [{ backend: "two.test:53" }, 0.25, "two.test:53"],
  ]);
  assert.deepEqual(await run({}, []), [[{}, 1, "no valid backends"]]);
  // The session sees that the client is the backend itself.
  assert.deepEqual(await run({}, [{ host: "192.0.2.7:50000" }], "x", "192.0.2.7"), [
    [{}, 1, "loop detected: the client has the address and port of a backend"],
  ]);
  const long = "the datagram is longer than frontendPolicies.udp.maxDatagramSize";
  assert.deepEqual(await run({ udp: { maxDatagramSize: 512 } }, [one]), [[{}, 1, "one.test:53"]]);
  assert.deepEqual(await run({ udp: { maxDatagramSize: 512 } }, [one], "x".repeat(513)), [[{}, 1, long]]);
  const ports = {
    networkAuthorization: { rules: [{ deny: 'destination.port == 53 && destination.address == "127.0.0.1"' }] },
  };
  assert.deepEqual(await run(ports, [one]), [
    [{}, 1, 'authorization failed: deny rules[0] is true (destination.port: 53, destination.address: "127.0.0.1")'],
  ]);
  assert.equal(requests, 0);
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

test("policies in shadow show what they would do, and no outcome is refused because of them", async () => {
  const policies = {
    apiKey: { shadow: true, mode: "strict", keys: [{ key: SECRET }] },
    authorization: { shadow: true, rules: [{ deny: 'request.path == "/s"' }] },
    extAuthz: { shadow: true, host: "127.0.0.1:1" },
  };
  const { code, stdout } = await explain(
    [on("s", "/s", policies)],
    ["--assume", "extAuthz=deny"],
    ["http://localhost:8080/s"],
  );
  assert.equal(code, 0);
  const shadows = stdout.split("\n").filter((line) => / shadow /.test(line));
  assert.deepEqual(shadows, [
    '✗ shadow apiKey  would deny with 401: no API key in the header authorization after "Bearer "',
    "✗ shadow extAuthz  would deny with 403: the service denies the request with status 403",
    '✗ shadow authorization  would deny with 403: rules[0] is true (request.path: "/s")',
  ]);
  assert.match(stdout, /→ 200 · route/);
  assert.equal(requests, 0);
});

test("what is not known is said with what to supply, and so is how many outcomes are left out", async () => {
  const names = ["x-a", "x-b", "x-c", "x-d", "x-e"];
  const rules = names.map((name) => ({ allow: `request.headers["${name}"] == "1"` }));
  const routes = [on("all", "/", { authorization: { rules } })];
  const redacted = (some: readonly string[]) => some.flatMap((name) => ["-H", `${name}: <redacted>`]);
  const { stdout } = await explain(routes, [], ["http://a/", ...redacted(["x-a"])]);
  const lines = stdout.split("\n");
  assert.equal(lines[0], 'if `request.headers["x-a"] == "1"` is true:');
  assert.equal(lines[2], "not known: the field x-a; write -H 'x-a: …' with its value");
  assert.ok(
    lines.some((line) =>
      line.startsWith('    ? rule allow request.headers["x-a"] == "1" → assumed true; not known: the field x-a  '),
    ),
  );
  const many = await explain(routes, [], ["http://a/", ...redacted(names)]);
  assert.match(
    many.stdout,
    /\n\d+ of at least \d+ outcomes shown; to see the others, assume some of what these were given\n$/,
  );
});
