import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { fieldsOf } from "../../base/fields.ts";
import { serve } from "../fixtures/admin.ts";
import { invoke } from "../fixtures/invoke.ts";
import { list, values } from "./dump.ts";
import { endpointRows } from "./endpoints.ts";
import { summarize } from "./summary.ts";

const FILE = fileURLToPath(new URL("../fixtures/dump.json", import.meta.url));
const TEXT = readFileSync(FILE, "utf8");
const firstRoute = (dump: unknown) => {
  const [listener] = values(fieldsOf(list(fieldsOf(dump).binds)[0]).listeners);
  return values(fieldsOf(listener).routes)[0];
};
const stored = (name: string) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url), "utf8");

test("config all shows a dump as tables", async () => {
  const { code, stdout } = await invoke(["proxy", "config", "all", "--file", FILE]);
  assert.equal(code, 0);
  assert.equal(stdout, stored("config-all.txt"));
});

test("config all prints the whole dump as JSON or YAML", async () => {
  const dump = JSON.parse(TEXT);
  const all = ["proxy", "config", "all", "--file", "-"];
  assert.deepEqual(JSON.parse((await invoke([...all, "-o", "json"], TEXT)).stdout), dump);
  assert.deepEqual(JSON.parse((await invoke([...all, "--json"], TEXT)).stdout), dump);
  const yaml = (await invoke([...all, "-o", "yaml"], TEXT)).stdout;
  assert.deepEqual(parse(yaml), dump);
  assert.equal((await invoke(all, yaml)).stdout, stored("config-all.txt"));
});

test("config routes, listeners and policies print the tables of config all, or its objects as JSON", async () => {
  const tables = stored("config-all.txt")
    .split("\n\n")
    .map((part) => part.trimEnd().split("\n"));
  const dump = JSON.parse(TEXT);
  for (const name of ["routes", "listeners", "policies"]) {
    const command = ["config", name, "--file", FILE];
    const [, ...lines] = tables.find(([title]) => title?.startsWith(name.toUpperCase())) ?? [];
    assert.equal((await invoke(command)).stdout, `${lines.join("\n")}\n`, name);
    const json = JSON.parse((await invoke([...command, "-o", "json"])).stdout);
    assert.equal(json.length, lines.length - 1, name);
    assert.deepEqual(parse((await invoke([...command, "-o", "yaml"])).stdout), json, name);
  }
  const [route] = JSON.parse((await invoke(["config", "routes", "--file", FILE, "--json"])).stdout);
  assert.deepEqual(route, firstRoute(dump));
  const [listener] = JSON.parse((await invoke(["config", "listeners", "--file", FILE, "--json"])).stdout);
  assert.deepEqual([listener.bind, listener.routes.length], ["bind/3000", 2]);
  const none = await invoke(["config", "policies", "-f", "-"], '{"binds":[]}');
  assert.equal(none.stdout, "POLICY  TARGET  PHASE  KIND\n");
});

test("config backends lists the endpoints that got requests, --all every one", async () => {
  const backends = ["proxy", "config", "backends", "--file", FILE];
  assert.equal((await invoke(backends)).stdout, stored("config-backends.txt"));
  const all = await invoke(["proxy", "c", "be", "--file", FILE, "--all", "-o", "json"]);
  const rows: readonly Record<string, unknown>[] = JSON.parse(all.stdout);
  assert.deepEqual(rows.at(-1), {
    type: "Service",
    name: "cart",
    namespace: "shop",
    endpoint: "other/cart-2",
    health: "1.00",
    rejected: false,
    reason: "",
    requests: 0,
    latencyMs: 0,
  });
});

test("inline backends of routes: routes show their address, the list of backends their route", async () => {
  const key = "default/default/bind/3000/listener0/default/shop";
  const info = { health: 1, totalRequests: 3, requestLatency: 0.002 };
  const host = { name: `${key}/backend0`, namespace: "", target: "127.0.0.1:9000" };
  const routes = { [key]: { key, backends: [{ weight: 1, backend: `/${key}/backend0` }] } };
  const tcpRoutes = { t: { key: "t", backends: [{ weight: 1, backend: { backend: `/${key}/backend0` } }] } };
  const dump = JSON.stringify({
    backends: [{ backend: { host }, endpoints: [{ active: { "127.0.0.1:9000": { info } }, rejected: {} }] }],
    binds: [{ key: "bind/3000", listeners: { a: { routes }, b: { tcpRoutes } } }],
  });
  const table = (await invoke(["proxy", "config", "routes", "-f", "-"], dump)).stdout;
  assert.match(table, new RegExp(`^${key} .* 127\\.0\\.0\\.1:9000 *$`, "m"));
  assert.match(table, /^t .* 127\.0\.0\.1:9000 *$/m);
  const backends = (await invoke(["proxy", "config", "backends", "-f", "-"], dump)).stdout;
  assert.match(backends, /^Backend +shop\/backend0 +default +127\.0\.0\.1:9000 +1\.00 +3 +2\.00ms$/m);
});

test("endpoints that are not used are shown without requests too, with the reason", async () => {
  const unhealthy = {
    info: { health: 1, totalRequests: 0, activeHealth: { state: "unhealthy", reason: "status 500" } },
  };
  const evicted = { info: { totalRequests: 0, evictedUntil: "3.3s" } };
  const dump = {
    services: [{ name: "a", endpoints: [{ active: { x: {} }, rejected: { y: unhealthy, z: evicted } }] }],
  };
  const { stdout } = await invoke(["proxy", "config", "backends", "-f", "-"], JSON.stringify(dump));
  const lines = stdout.split("\n");
  assert.match(lines[0] ?? "", / LATENCY +REASON$/);
  assert.match(lines[1] ?? "", /^Service +a +y +unhealthy +0 +status 500$/);
  assert.match(lines[2] ?? "", /^Service +a +z +Evict \(3\.3s\) +0 *$/);
  assert.equal(lines[3], "(1 without requests hidden; --all shows them)");
});

test("config backends says when it hides everything", async () => {
  const idle = { services: [{ name: "a", endpoints: [{ active: { x: { info: {} } } }] }] };
  const { stdout } = await invoke(["proxy", "config", "backends", "-f", "-"], JSON.stringify(idle));
  assert.match(stdout, /^TYPE +NAME.*\n\(1 without requests hidden; --all shows them\)\n$/);
});

test("of a dump with another shape, the known parts are shown", () => {
  for (const dump of [{}, null, [], { binds: 7, services: [null], backends: [{}], policies: [1], routes: "x" }]) {
    assert.equal(typeof summarize(dump), "string");
    assert.deepEqual(endpointRows(dump), []);
  }
  assert.equal(summarize({}), "The proxy has no configuration.\n");
});

test("a file that is not a dump is rejected with the reason", async () => {
  const all = ["proxy", "config", "all", "--file"];
  const missing = await invoke([...all, "missing.json"]);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /^Error: failed to read config dump file missing\.json: it does not exist/);
  for (const other of ['{"name":"tracegate","version":"0.1.0"}', "# A page\n\n| with | a table\n"])
    assert.match(
      (await invoke([...all, "-"], other)).stderr,
      /standard input: it contains no configuration dump\nTry: /,
    );
  assert.match((await invoke([...all, "-"], "[1]")).stderr, /standard input: it contains no configuration dump\nTry: /);
  assert.match(
    (await invoke([...all, "-"], '{"a":')).stderr,
    /^Error: failed to read config dump file standard input: .*JSON/,
  );
});

test("config all --local reads from the admin server", async (t) => {
  const admin = await serve(t, (_request, response) => response.end(TEXT));
  const { stdout } = await invoke(["proxy", "config", "all", "--local", "--proxy-admin-port", String(admin.port)]);
  assert.equal(stdout, stored("config-all.txt"));
  assert.deepEqual(admin.requests, ["GET /config_dump"]);
});
