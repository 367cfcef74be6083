import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { AdminClient } from "../../../src/admin/client/client.ts";
import type { EffectivePolicy, WrittenPolicy } from "../../../src/admin/plane/answers.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { TGCTL } from "../../helpers/programs.ts";
import { until } from "../../helpers/until.ts";

const SECRET = "hunter2-secret";
const GATEWAY = { gatewayName: "default", gatewayNamespace: "default" };

const backend = createServer((request, response) => {
  response.statusCode = request.url?.startsWith("/cart") ? 500 : 200;
  const grpcStatus = request.headers["x-grpc-status"];
  if (grpcStatus !== undefined)
    response.setHeaders(
      new Map([
        ["content-type", "application/grpc"],
        ["grpc-status", String(grpcStatus)],
      ]),
    );
  request.resume();
  response.end("hello");
});
let gateway: TestGateway;
let address: string;

before(async () => {
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  address = `127.0.0.1:${(backend.address() as AddressInfo).port}`;
  const backends = [{ host: address }];
  const header = (name: string, value: string): object => ({ name, value: { exact: value } });
  const routes = [
    { name: "all", backends },
    {
      name: "cart",
      matches: [{ path: { pathPrefix: "/cart" }, method: "GET", headers: [header("x-tier", "gold")] }],
      backends,
    },
    {
      name: "keyed",
      matches: [
        { path: { exact: "/keyed" }, headers: [header("authorization", SECRET)] },
        { path: { exact: "/k" }, query: [{ name: "access_token", value: { exact: SECRET } }] },
      ],
      backends: [{ routeGroup: "inner" }],
    },
    {
      name: "never",
      policies: {
        timeout: { requestTimeout: "5s" },
        authorization: { rules: [{ deny: 'request.path == "/a"' }, { deny: 'request.path == "/b"' }] },
        apiKey: { keys: [{ key: SECRET }] },
        retry: { attempts: 1, codes: [503] },
      },
      backends: [{ backend: "/shop", weight: 3 }],
    },
  ];
  gateway = await TestGateway.start({
    binds: [{ port: 0, listeners: [{ name: "web", routes, policies: { cors: { allowOrigins: ["*"] } } }] }],
    policies: [
      { name: { name: "slow" }, target: { gateway: GATEWAY }, policy: { timeout: { requestTimeout: "9s" } } },
      {
        name: { name: "no-guests" },
        target: { gateway: { ...GATEWAY, listenerName: "web" } },
        policy: { authorization: { rules: [{ deny: 'request.headers["x-role"] == "guest"' }] } },
      },
      {
        name: { name: "edit" },
        target: { route: { name: "never" } },
        policy: { responseHeaderModifier: { set: { "x-by": "route" } } },
      },
    ],
    routeGroups: [
      { name: "inner", routes: [{ name: "leaf", policies: { backendAuth: { key: { value: SECRET } } }, backends }] },
    ],
    backends: [{ name: "shop", host: address, policies: { backendAuth: { key: { value: SECRET } } } }],
  });
});
after(async () => {
  await gateway?.stop();
  backend.close();
});

function send(path: string): Promise<string> {
  const headers = { "x-tier": "gold", authorization: SECRET };
  return fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers }).then((response) => response.text());
}

const names = (list: readonly { readonly name: string }[]): string[] => list.map(({ name }) => name);

test("routes stand in the order of precedence, with matches in words, backends, place and what shadows them", async () => {
  const client = new AdminClient(gateway.url("admin"));
  const { routes, total, found, generation } = await client.routes();
  assert.deepEqual([total, found, generation], [5, 5, 1]);
  assert.deepEqual(
    names(routes),
    ["keyed", "cart", "all", "never", "leaf"].map((name) => `default/${name}`),
  );
  const [keyed, cart, all, never, leaf] = routes;
  assert.deepEqual([keyed?.position, cart?.position, leaf?.position], [1, 2, 1], "of each listener or group");
  assert.deepEqual(keyed?.matches, [
    "path /keyed, header authorization = <redacted>",
    "path /k, parameter access_token = <redacted>",
  ]);
  assert.deepEqual(keyed?.backends, [{ name: "group inner", weight: 1 }]);
  assert.deepEqual(cart?.matches, ["path prefix /cart, method GET, header x-tier = gold"]);
  assert.deepEqual([cart?.bind, cart?.listener, cart?.hostnames], ["bind/0", "web", ["*"]]);
  assert.deepEqual(cart?.backends, [{ name: address, weight: 1, key: `/${cart?.key}/backend0` }]);
  assert.ok((cart?.origin?.place?.line ?? 0) > (all?.origin?.place?.line ?? Number.POSITIVE_INFINITY));
  assert.deepEqual(never?.backends, [{ name: "/shop", weight: 3, key: "/shop" }]);
  assert.deepEqual([all?.shadowedBy, never?.shadowedBy], [undefined, ["default/all"]]);
  assert.deepEqual([leaf?.group, leaf?.listener], ["inner", undefined]);
  const ofListener = await client.routes({ listener: "default/default/bind/0/web", search: "e" });
  assert.deepEqual(
    [names(ofListener.routes), ofListener.found],
    [["keyed", "cart", "all", "never"].map((name) => `default/${name}`), 4],
    "without those of the group",
  );
  assert.equal((await client.routes({ listener: "default/default/bind/0/other" })).found, 0);
});

test("traffic of each route, by which they can be sorted; a page has a part of what is found", async () => {
  const client = new AdminClient(gateway.url("admin"));
  const began = new Date().toISOString();
  for (const path of ["/", "/", "/", "/cart", "/cart", "/keyed"]) await send(path);
  const sorted = await until(async () => {
    const { routes } = await client.routes({ sort: "requests" });
    return routes.reduce((sum, { requests }) => sum + requests, 0) === 6 && routes;
  });
  assert.deepEqual(
    sorted.slice(0, 3).map(({ name, requests, errors }) => [name, requests, errors]),
    [
      ["default/all", 3, 0],
      ["default/cart", 2, 2],
      ["default/leaf", 1, 0],
    ],
  );
  assert.ok((sorted[0]?.p99 ?? 0) >= (sorted[0]?.p50 ?? Number.POSITIVE_INFINITY));
  assert.equal(names((await client.routes({ sort: "errors" })).routes)[0], "default/cart");
  const { routes: newest, since } = await client.routes({ sort: "latest" });
  assert.deepEqual(names(newest.slice(0, 3)), ["default/leaf", "default/cart", "default/all"]);
  assert.ok(since < began && (newest[2]?.latest ?? "") >= began, "by the clock on the wall");
  assert.equal(newest[3]?.latest, undefined);
  const page = await client.routes({ sort: "name", page: 2, limit: 2 });
  assert.deepEqual([names(page.routes), page.found], [["default/keyed", "default/leaf"], 5]);
});

test("a call of gRPC that failed or was rejected is an error, though its HTTP status is 200", async () => {
  const client = new AdminClient(gateway.url("admin"));
  const call = async (path: string, status: number, role = "member"): Promise<void> => {
    const headers = { "content-type": "application/grpc", "x-grpc-status": String(status), "x-role": role };
    const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { method: "POST", headers });
    assert.deepEqual([response.status, response.headers.get("grpc-status")], [200, String(status)]);
  };
  const errors = async (): Promise<number> => {
    const { routes } = await client.routes({ search: "default/all" });
    return routes.find(({ name }) => name === "default/all")?.errors ?? 0;
  };
  const before = await errors();
  // If a backend says that a call may not be made, nothing has failed.
  await call("/shop.Shop/NotForYou", 7);
  await call("/shop.Shop/Broken", 14);
  await call("/shop.Shop/Rejected", 7, "guest");
  await until(async () => (await errors()) === before + 2);
  const { records } = await client.requests({ where: 'request.path.startsWith("/shop.Shop/")', errors: true });
  assert.deepEqual(
    records.map(({ path, status, grpcStatus, error, kept }) => [path, status, grpcStatus, error, kept]),
    [
      ["/shop.Shop/Rejected", 200, 7, "TG_AUTHORIZATION", true],
      ["/shop.Shop/Broken", 200, 14, undefined, true],
    ],
  );
  const { failures } = await client.overview();
  assert.match(failures?.groups.map(({ decidedBy }) => decidedBy).join("\n") ?? "", /^authorization failed, at /m);
});

test("a search finds names, paths and backends, and never what is redacted", async () => {
  const client = new AdminClient(gateway.url("admin"));
  const found = async (search: string): Promise<string[]> => names((await client.routes({ search })).routes);
  assert.deepEqual(await found("CART"), ["default/cart"]);
  assert.deepEqual(await found("/keyed"), ["default/keyed"]);
  assert.deepEqual((await found(address)).length, 3);
  assert.deepEqual(await found("/shop"), ["default/never"]);
  assert.deepEqual(await found(SECRET.slice(0, 4)), []);
  assert.ok(!JSON.stringify(await client.routes()).includes(SECRET));
  const wrong = await fetch(`${gateway.url("admin")}/routes?sort=age`);
  assert.equal(wrong.status, 400);
  assert.match(await wrong.text(), /invalid sort "age": expected precedence, name, requests, errors, p50, p99, latest/);
});

test("one route with its policies in the order in which they run: where each is written, what it is attached to, and what it replaces", async () => {
  const client = new AdminClient(gateway.url("admin"));
  const { routes } = await client.routes();
  const view = async (name: string) => {
    const { key = "" } = routes.find((route) => route.name === name) ?? {};
    const { places } = await client.route(key);
    const [place, ...others] = places.shown;
    assert.ok(place !== undefined && others.length === 0 && places.total === 1);
    return place;
  };
  const line = ({ origin: { place }, attachedTo, rules }: WrittenPolicy): string =>
    [attachedTo, ...(rules === undefined ? [] : [rules]), source[(place?.line ?? 0) - 1]?.trim()].join(" ");
  const shown = (list: readonly EffectivePolicy[] = []): unknown[] =>
    list.map(({ kind, runs, from, replaced }) => [kind, runs.join(), from.map(line), replaced.map(line)]);
  const source = (await readFile(gateway.file, "utf8")).split("\n");
  const never = await view("default/never");
  assert.deepEqual([never.name, never.shadowedBy, never.position], ["default/never", ["default/all"], 4]);
  assert.deepEqual(shown(never.policies.gateway), [["cors", "request", ["listener cors:"], []]]);
  assert.deepEqual(shown(never.policies.route), [
    ["timeout", "request", ["route timeout:"], ["gateway timeout:"]],
    ["apiKey", "request", ["route apiKey:"], []],
    ["authorization", "request", ["listener 1 authorization:", "route 2 authorization:"], []],
    ["retry", "request", ["route retry:"], []],
    ["responseHeaderModifier", "response", ["route responseHeaderModifier:"], []],
  ]);
  assert.deepEqual(never.policies.route[0]?.config, { requestTimeout: "5s" });
  assert.deepEqual(never.backendPolicies.map(shown), [[["backendAuth", "request", ["backend backendAuth:"], []]]]);
  assert.ok(!JSON.stringify(never).includes(SECRET));
  const leaf = await view("default/leaf");
  assert.deepEqual(
    leaf.parents?.map(({ name }) => name),
    ["default/keyed"],
  );
  assert.deepEqual([leaf.policies.gateway, leaf.policies.route], [undefined, []]);
  assert.deepEqual(leaf.backendPolicies.map(shown), [[["backendAuth", "request", ["route backendAuth:"], []]]]);
  const unknown = await fetch(`${gateway.url("admin")}/routes/none`);
  assert.deepEqual([unknown.status, await unknown.text()], [404, 'no route has the key "none"; /routes lists them\n']);
});

test("tgctl shows a line for each route, and a table of the policies of one", async () => {
  const tgctl = async (...words: readonly string[]): Promise<string[]> => {
    const args = ["proxy", "routes", "--local", "--proxy-admin-port", new URL(gateway.url("admin")).port, ...words];
    const child = spawn(TGCTL, args, { stdio: ["ignore", "pipe", "inherit"] });
    return (await text(child.stdout)).split("\n").map((line) => line.replaceAll(/ +/g, " ").trimEnd());
  };
  const client = new AdminClient(gateway.url("admin"));
  await send("/cart");
  await until(async () => ((await client.routes({ sort: "errors" })).routes[0]?.errors ?? 0) > 0);
  const list = await tgctl("--sort", "errors", "--limit", "1");
  assert.equal(list[0], "ROUTE AT HOSTS MATCHES BACKENDS REQUESTS ERRORS P50 P99 LATEST");
  assert.match(
    list[1] ?? "",
    /^default\/cart bind\/0 web \* path prefix \/cart, method GET, header x-tier = gold 127\.\S+ \d+ \d+ \S+s \S+s \d+s$/,
  );
  assert.equal(list[2], "4 more routes");
  assert.match((await tgctl("--find", "NEVER"))[1] ?? "", /^default\/never .* \/shop ×3 0 0 default\/all$/);
  const policies = await tgctl("--policies", "default/default/bind/0/web/default/never");
  assert.equal(policies[0], "default/never at bind/0 web");
  assert.equal(policies[1], "PHASE POLICY RUNS ON WRITTEN AT REPLACES");
  const shown = policies.map((line) => line.replaceAll(/\S+gateway\.yaml:\d+/g, "FILE"));
  assert.ok(shown.includes("route timeout request route FILE gateway FILE"), shown.join("\n"));
  assert.ok(shown.includes("route authorization request listener FILE (1 rule), route FILE (2 rules)"));
  assert.ok(shown.includes("backend /shop backendAuth request backend FILE"));
});
