/** The orchestrated mode of the interface, command by command, on a real cluster. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Explanation } from "../../src/rehearsal/explanation.ts";
import { get } from "./lib/http.ts";
import { echoYaml, gatewayYaml, namespaceYaml, routeYaml } from "./lib/objects.ts";
import { apply, CONTROLLER_NAMESPACE, eventually, gatewayAddress, getJson, kubectl, tgctl } from "./lib/tools.ts";

const NS = "e2e-traffic";
const HOST = "www.example.com";
let address = "";

before(async () => {
  await apply(
    namespaceYaml(NS) +
      echoYaml(NS, "blue") +
      echoYaml(NS, "green") +
      gatewayYaml(NS, "web") +
      routeYaml(NS, "main", "web", HOST, "/blue", "blue") +
      routeYaml(NS, "other", "web", HOST, "/green", "green"),
  );
  address = await gatewayAddress(NS, "web");
  for (const path of ["/blue", "/green"])
    await eventually(`traffic of ${path}`, async () => (await get({ address, host: HOST, path })).status === 200);
});

after(() => kubectl("delete", "namespace", NS, "--wait=false"));

interface Echo {
  readonly path: string;
  readonly pod: string;
}

async function echoed(path: string): Promise<Echo> {
  const { status, body } = await get({ address, host: HOST, path });
  assert.equal(status, 200, body);
  return JSON.parse(body) as Echo;
}

async function output(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tgctl(...args);
  assert.equal(code, 0, `tgctl ${args.join(" ")}: ${stderr}`);
  return stdout;
}

interface TraceEvent {
  readonly message: {
    readonly type: string;
    readonly selectedRoute?: string;
    readonly evaluatedRoutes?: readonly string[];
    readonly target?: string;
    readonly status?: number;
    readonly stage?: string;
    readonly requestState?: {
      readonly env?: Readonly<Record<string, string>>;
      readonly backend?: { readonly type: string };
    };
  };
}

test("requests reach the backends that their routes name", async () => {
  assert.match((await echoed("/blue/x")).pod, /^blue-/);
  assert.match((await echoed("/green/x")).pod, /^green-/);
  assert.equal((await get({ address, host: HOST, path: "/red" })).status, 404);
  assert.equal((await get({ address, host: "other.example.com", path: "/blue" })).status, 404);
});

test("proxy trace sends a request and shows the route, the pod and the backend", async () => {
  const trace = [
    "proxy",
    "trace",
    "gateway/web",
    "-n",
    NS,
    "--raw",
    "--port",
    "80",
    "--",
    `http://${HOST}/blue/traced`,
  ];
  const events = (await output(...trace))
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as TraceEvent).message);
  const types = events.map(({ type }) => type);
  assert.equal(types[0], "requestStarted");
  assert.equal(types.at(-1), "requestFinished");
  const selection = events.find(({ type }) => type === "routeSelection");
  assert.equal(selection?.selectedRoute, `${NS}/main.00.http`);
  assert.ok(selection?.evaluatedRoutes?.includes(`${NS}/main.00.http`));
  const pods = await getJson<{ items: { metadata: { name: string } }[] }>(
    ...["-n", NS, "pods", "-l", "gateway.networking.k8s.io/gateway-name=web"],
  );
  const names = pods.items.map(({ metadata }) => metadata.name);
  for (const { requestState } of events.filter(({ type }) => type === "requestSnapshot")) {
    const { podName = "", ...env } = requestState?.env ?? {};
    assert.ok(names.includes(podName), podName);
    assert.deepEqual(env, { namespace: NS, gateway: "web" });
  }
  const final = events.find(({ stage, type }) => type === "requestSnapshot" && stage === "final request");
  assert.equal(final?.requestState?.backend?.type, "service");
  assert.equal(events.find(({ type }) => type === "backendCallResult")?.status, 200);
});

test("proxy trace without a URL waits for the next request of any client", async () => {
  const waiting = tgctl("proxy", "trace", "gateway/web", "-n", NS, "--raw");
  const traced = eventually("a traced request", async () => {
    await echoed("/green/watched");
    return (await Promise.race([waiting, Promise.resolve(undefined)])) !== undefined;
  });
  const { code, stdout, stderr } = await waiting;
  assert.equal(code, 0, stderr);
  assert.match(stdout, new RegExp(`"selectedRoute":"${NS}/other.00.http"`));
  await traced;
});

test("proxy config shows the routes and the health of the backends", async () => {
  const dump = JSON.parse(await output("proxy", "config", "all", "gateway/web", "-n", NS, "-o", "json")) as object;
  assert.match(JSON.stringify(dump), new RegExp(`${NS}/main.00.http`));
  assert.match(await output("proxy", "config", "all", "gateway/web", "-n", NS, "-o", "yaml"), /binds:/);
  const [header = "", ...rows] = (await output("proxy", "config", "backends", "gateway/web", "-n", NS))
    .trim()
    .split("\n");
  assert.deepEqual(header.trim().split(/\s{2,}/), [
    "TYPE",
    "NAME",
    "NAMESPACE",
    "ENDPOINT",
    "HEALTH",
    "REQUESTS",
    "LATENCY",
  ]);
  const blue = rows.find((row) => /\bblue\b/.test(row)) ?? "";
  assert.match(blue, new RegExp(`^Service +blue +${NS} +blue-\\S+ +1\\.00 +\\d+ +\\d+(\\.\\d+)?ms$`));
});

test("proxy log shows and sets the level of the pods", async () => {
  assert.match(await output("proxy", "log", "gateway/web", "-n", NS), /current log level is info/);
  assert.match(
    await output("proxy", "log", "gateway/web", "-n", NS, "--level", "debug"),
    /current log level is .*debug/,
  );
  assert.match(await output("proxy", "log", "gateway/web", "-n", NS, "--level", "info"), /current log level is info/);
});

test("controller log shows and sets the levels of components", async () => {
  const shown = (await output("controller", "log")).trim().split("\n");
  assert.deepEqual(shown.slice(0, 2), ["current log levels:", "---"]);
  const components = shown.slice(2).map((line) => line.split(": ")[0]);
  for (const each of ["tracegate/syncer", "tracegate/translator", "gateway-controller", "deployer", "default"])
    assert.ok(components.includes(each), each);
  await output("controller", "log", "--set", "tracegate/translator=debug");
  assert.match(await output("controller", "log", "-n", CONTROLLER_NAMESPACE), /^tracegate\/translator: debug$/m);
  await output("controller", "log", "--level", "info");
  assert.doesNotMatch(await output("controller", "log"), /: debug$/m);
});

test("a changed route takes effect, and a deleted one gets 404", async () => {
  await apply(routeYaml(NS, "main", "web", HOST, "/blue", "green"));
  await eventually("the other backend", async () => /^green-/.test((await echoed("/blue")).pod));
  await kubectl("-n", NS, "delete", "httproute", "main");
  await eventually("404", async () => (await get({ address, host: HOST, path: "/blue" })).status === 404);
});

test("tgctl status says that every proxy runs what the controller sent", async () => {
  await eventually("in sync", async () => (await tgctl("status", "gateway/web", "-n", NS)).code === 0, 30);
});

test("tgctl explain: the proxy of a Gateway says which route a request gets, where that is written, and sends nothing", async () => {
  const explain = ["explain", "gateway/web", "-n", NS];
  const tree = await output(...explain, "--", `http://${HOST}/green/a`);
  assert.match(tree, new RegExp(`^GET /green/a → 200 · route ${NS}/other · endpoint \\d`));
  assert.match(tree, new RegExp(`^✓ listener http  .*  Gateway ${NS}/web spec\\.listeners\\[0\\]$`, "m"));
  assert.match(tree, new RegExp(`^✓ HTTPRoute ${NS}/other rules\\[0\\]  the only route that matches$`, "m"));
  assert.match(tree, new RegExp(`^✓ endpoint \\S+  of ${NS}/green:80, status 200`, "m"));
  const none = await tgctl(...explain, "-o", "json", "--", "http://elsewhere.example.com/");
  const { outcomes } = JSON.parse(none.stdout) as Explanation;
  assert.deepEqual([none.code, outcomes.map(({ status }) => status)], [1, [404]]);
  const down = await tgctl(...explain, "--assume", "endpoints=none", "--", `http://${HOST}/green`);
  assert.match(down.stdout, /→ 503 · .*no healthy backends/);
  const missing = await tgctl("explain", "gateway/nowhere", "-n", NS, "--", `http://${HOST}/`);
  assert.notEqual(missing.code, 0);
  assert.match(missing.stderr, new RegExp(`failed retrieving gateway/nowhere in namespace "${NS}"`));
});

test("tgctl explains objects that it cannot find", async () => {
  const missing = await tgctl("proxy", "config", "all", "gateway/nowhere", "-n", NS);
  assert.notEqual(missing.code, 0);
  assert.match(missing.stderr, new RegExp(`failed retrieving gateway/nowhere in namespace "${NS}"`));
  const unreachable = await tgctl("-k", "/nonexistent/kubeconfig", "proxy", "config", "all", "gateway/web", "-n", NS);
  assert.notEqual(unreachable.code, 0);
  assert.match(unreachable.stderr, /kubeconfig/i);
});
