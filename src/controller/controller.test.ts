import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type OutgoingHttpHeaders, request } from "node:http";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { TestApiServer } from "../../test/helpers/kube/api-server.ts";
import { forbidden } from "../../test/helpers/kube/permissions.ts";
import { until } from "../../test/helpers/until.ts";
import { XdsPeer } from "../../test/helpers/xds-peer.ts";
import { appRoot } from "../base/app-root.ts";
import { LogOutput } from "../base/log.ts";
import type { Gateway, GatewayClass, HttpRoute, Service } from "../kube/objects.ts";
import { unguarded } from "../net/testing/egress.ts";
import { RESOURCE_TYPE } from "../xds/resources.ts";
import { MANAGED_BY, sharedDeploymentName } from "./base/manifest.ts";
import { controllerSettings } from "./base/settings.ts";
import { Controller } from "./controller.ts";
import { componentFilter } from "./log-levels.ts";

const GATEWAY_API = "gateway.networking.k8s.io/v1";

const gateway = {
  apiVersion: GATEWAY_API,
  kind: "Gateway",
  metadata: { namespace: "apps", name: "web" },
  spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port: 8080, protocol: "HTTP" }] },
} as const;

const route = {
  apiVersion: GATEWAY_API,
  kind: "HTTPRoute",
  metadata: { namespace: "apps", name: "shop" },
  spec: { parentRefs: [{ name: "web" }], rules: [{ backendRefs: [{ name: "shop", port: 80 }] }] },
} as const;

interface Run extends AsyncDisposable {
  readonly controller: Controller;
  readonly lines: string[];
  get(port: string, path: string, method?: string): Promise<{ status: number; text: string }>;
}

async function run(
  server: TestApiServer,
  name = "one",
  xds: "tls" | "plaintext" = "plaintext",
  further: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const lines: string[] = [];
  const output = new LogOutput(componentFilter("info"), "json", (line) => lines.push(line), "component");
  const env = { POD_NAME: name, POD_NAMESPACE: "tracegate-system", TRACEGATE_XDS_MODE: xds, ...further };
  const settings = {
    ...controllerSettings(env, "0.0.0", "host"),
    ports: { admin: 0, metrics: 0, health: 0, xds: 0 },
  };
  const controller = await Controller.start({
    settings,
    access: server.access,
    version: "0.0.0",
    build: () => ({ version: "0.0.0" }),
    output,
    own: unguarded(),
  });
  return {
    controller,
    lines,
    async get(port, path, method = "GET") {
      const response = await fetch(`http://127.0.0.1:${controller.ports[port]}${path}`, { method });
      return { status: response.status, text: await response.text() };
    },
    async [Symbol.asyncDispose]() {
      await controller.close();
      assert.deepEqual(forbidden(server.received, "tracegate-system"), []);
    },
  };
}

interface RejectionEvent {
  readonly metadata: { readonly namespace: string };
  readonly involvedObject: { readonly kind: string };
  readonly message: string;
}

function accepted(object: Gateway | undefined): string | undefined {
  return object?.status?.conditions?.find(({ type }) => type === "Accepted")?.status;
}

test("objects become states, statuses and deployments", async () => {
  await using server = await TestApiServer.start();
  server.set({ apiVersion: "v1", kind: "Namespace", metadata: { name: "apps" } });
  server.set(gateway);
  await using running = await run(server, "one", "tls");
  await until(() => accepted(server.get("Gateway", "apps/web")) === "True", "status of the Gateway");
  // It has created its class itself.
  assert.equal(server.get("GatewayClass", "tracegate")?.spec.controllerName, "tracegate.dev/gateway-controller");
  await until(() => server.get("Deployment", "apps/web") !== undefined, "the Deployment");
  assert.equal(running.lines.filter((line) => line.includes("created the GatewayClass")).length, 1);

  server.set(route);
  const reasons = (): (string | undefined)[] | undefined =>
    (server.get("HTTPRoute", "apps/shop") as HttpRoute | undefined)?.status?.parents?.[0]?.conditions.map(
      ({ reason }) => reason,
    );
  await until(() => reasons()?.includes("BackendNotFound") === true, "status of the route");
  // While changes keep coming, statuses may precede states by some milliseconds.
  await until(async () => {
    const { text } = await running.get("admin", "/snapshots/gateways");
    const { gateways } = JSON.parse(text) as { gateways: Record<string, { resources: string[] }> };
    return gateways["apps/web"]?.resources.includes("route/apps/web.http/apps/shop.00.http") === true;
  }, "the route in the state");

  server.delete("Gateway", "apps/web");
  await until(
    async () => !(await running.get("admin", "/snapshots/gateways")).text.includes("apps/web.http"),
    "the end",
  );
});

test("an unusable certificate does not replace the former one, even after a restart of the controller", async () => {
  await using server = await TestApiServer.start();
  server.set({ apiVersion: "v1", kind: "Namespace", metadata: { name: "apps" } });
  const tls = { certificateRefs: [{ name: "web" }] };
  server.set({
    ...gateway,
    spec: { ...gateway.spec, listeners: [{ name: "https", port: 8443, protocol: "HTTPS", tls }] },
  } as never);
  const file = (name: string): string => readFileSync(`${appRoot}examples/recipes/certs/${name}`, "base64");
  const good = { "tls.crt": file("server.pem"), "tls.key": file("server.key") };
  const metadata = { namespace: "apps", name: "web" };
  const set = (data: object) => server.set({ apiVersion: "v1", kind: "Secret", metadata, data } as never);
  set(good);
  const secrets = (): readonly string[] => server.store.list("v1/secrets").map(([key]) => key);
  const resolved = (): string | undefined =>
    server.get("Gateway", "apps/web")?.status?.listeners?.[0]?.conditions.find(({ type }) => type === "ResolvedRefs")
      ?.message;
  {
    await using _first = await run(server);
    await until(() => resolved() === "All references are resolved", "the certificate");
    set({ ...good, "tls.crt": "aGVsbG8=" });
    await until(() => secrets().some((key) => key.startsWith("apps/web-former-")), "the copy");
  }
  await using second = await run(server, "two");
  await until(
    () => second.lines.some((line) => line.includes("the former certificate stays in use")),
    "the copy to be read",
  );
  const stays = /tls.crt is not a certificate in PEM; the former certificate stays in use/;
  await until(() => stays.test(resolved() ?? ""), "the status");
  set(good);
  await until(() => resolved() === "All references are resolved", "the new certificate");
  await until(() => !secrets().some((key) => key.startsWith("apps/web-former-")), "the end of the copy");
});

test("probes, metrics and the admin server", async () => {
  await using server = await TestApiServer.start();
  const held = Promise.withResolvers<void>();
  server.intercept = ({ path, query }) => (path.endsWith("/secrets") && !query.has("watch") ? held.promise : undefined);
  await using running = await run(server);
  assert.deepEqual(await running.get("health", "/healthz"), { status: 200, text: "ok\n" });
  assert.deepEqual(await running.get("health", "/readyz"), { status: 500, text: "not synced\n" });
  held.resolve();
  await until(async () => (await running.get("health", "/readyz")).status === 200, "ready");
  server.set({
    ...gateway,
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "apps", name: "key" },
    data: { "tls.key": "c2VjcmV0" },
  } as never);
  const ref = (kind: string, name: string, key: string) => ({ key: { [kind]: { name, key } } });
  const keys = [{ key: "inline-key" }, ref("secretKeyRef", "key", "tls.key"), ref("configMapKeyRef", "keys", "file")];
  const metadata = { namespace: "apps", name: "keys" };
  const spec = {
    targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "web" }],
    traffic: { apiKey: { keys } },
  };
  server.set({ apiVersion: "tracegate.dev/v1alpha1", kind: "TracegatePolicy", metadata, spec } as never);
  await until(async () => (await running.get("admin", "/snapshots/objects")).text.includes('"apps/key"'), "the Secret");
  const { text: objects } = await running.get("admin", "/snapshots/objects");
  assert.match(objects, /"tls.key": "<redacted>"/);
  assert.doesNotMatch(objects, /c2VjcmV0/);
  server.set({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { file: "password of others" } } as never);
  const shown = async (): Promise<string> => (await running.get("admin", "/snapshots/objects")).text;
  await until(async () => [...(await shown()).matchAll(/apps\/keys/g)].length === 2, "the policy and the ConfigMap");
  assert.doesNotMatch(await shown(), /inline-key|password of others/);
  const { text: metrics } = await running.get("metrics", "/metrics");
  assert.match(metrics, /tracegate_controller_build_info\{version="0.0.0"\} 1/);
  assert.match(metrics, /tracegate_controller_objects\{kind="Secret"\} 1/);
  const page = readFileSync(`${appRoot}docs/metrics.md`, "utf8").replaceAll("`…_", "`tracegate_xds_auth_rq_");
  for (const [, name = ""] of metrics.matchAll(/^# HELP (\w+?)(?:_bucket|_sum|_count)? /gm))
    assert.ok(page.includes(`\`${name}\``), `docs/metrics.md lacks ${name}`);
  assert.match(await running.get("admin", "/").then(({ text }) => text), /GET +\/snapshots\/proxies/);
  assert.deepEqual(JSON.parse((await running.get("admin", "/version")).text), { version: "0.0.0" });
});

test("the admin server accepts only requests from this machine, and none from web pages", async () => {
  await using server = await TestApiServer.start();
  await using running = await run(server);
  const { admin = 0 } = running.controller.ports;
  const ask = (headers: OutgoingHttpHeaders, method = "GET"): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const path = method === "GET" ? "/snapshots/objects" : "/logging?level=debug";
      request({ host: "127.0.0.1", port: admin, path, method, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end();
    });
  assert.equal(await ask({ host: `localhost:${admin}` }), 200);
  assert.equal(await ask({ host: "attacker.example" }), 403);
  assert.equal(await ask({ host: `localhost:${admin}`, origin: "https://attacker.example" }, "POST"), 403);
  const others = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const outside = others.find(({ internal, family }) => !internal && family === "IPv4")?.address;
  if (outside !== undefined) await assert.rejects(fetch(`http://${outside}:${admin}/`));
});

test("log levels are shown and set by component; a request with an invalid level changes none", async () => {
  await using server = await TestApiServer.start();
  await using running = await run(server);
  const post = (query: string): ReturnType<Run["get"]> => running.get("admin", `/logging${query}`, "POST");
  const listed = (levels: readonly string[]): string =>
    `current log levels:\n---\ntracegate/syncer: ${levels[0]}\ntracegate/translator: ${levels[1]}\ngateway-controller: ${levels[2]}\ndeployer: ${levels[3]}\ndefault: ${levels[4]}\n`;
  assert.deepEqual(await post(""), { status: 200, text: listed(["info", "info", "info", "info", "info"]) });
  assert.equal((await post("?level=debug")).text, "all logger levels updated to level: debug\n");
  assert.equal((await post("?deployer=warn")).text, "component deployer log level set to: warn\n");
  assert.deepEqual((await post("")).text, listed(["debug", "debug", "debug", "warn", "debug"]));
  assert.deepEqual(await post("?default=error&deployer=loud"), {
    status: 400,
    text: 'unknown log level "loud"; must be one of error, warn, info, debug, trace\n',
  });
  assert.deepEqual(await post("?krt=info"), { status: 400, text: "logger not found for component: krt\n" });
  assert.deepEqual(await post("?deployer="), { status: 400, text: "component deployer: empty value\n" });
  assert.deepEqual((await post("")).text, listed(["debug", "debug", "debug", "warn", "debug"]));
  assert.deepEqual(await running.get("admin", "/logging"), { status: 405, text: "method must be one of POST|PUT\n" });
  assert.equal((await running.get("admin", "/logging?level=info", "PUT")).status, 200);
});

test("one replica writes; when it stops, the other takes over at once", async () => {
  await using server = await TestApiServer.start();
  server.set(gateway);
  const first = await run(server, "one");
  await until(() => first.controller.leading, "the first leads");
  await using second = await run(server, "two");
  await until(() => second.controller.synced, "the second has synced");
  assert.equal(second.controller.leading, false);
  await first.controller.close();
  await until(() => second.controller.leading, "the second leads");
  server.set({ ...gateway, metadata: { namespace: "apps", name: "other" } });
  await until(() => accepted(server.get("Gateway", "apps/other")) === "True", "status by the second");
});

test("the controller survives an outage of the API server", async () => {
  await using server = await TestApiServer.start();
  await using running = await run(server);
  await until(() => running.controller.leading, "leading");
  await server.stop();
  assert.equal((await running.get("health", "/readyz")).status, 200);
  server.set(gateway);
  server.compact();
  await server.listen();
  await until(() => accepted(server.get("Gateway", "apps/web")) === "True", "status after the outage");
});

test("a proxy with a token gets its Gateway's state; what it rejects is a condition and an Event until it succeeds", async (t) => {
  await using server = await TestApiServer.start();
  const folder = mkdtempSync(join(tmpdir(), "tracegate-token-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "wrong"), "wrong");
  writeFileSync(join(folder, "token"), "proxy-token");
  const account = { username: "system:serviceaccount:apps:web", audiences: ["tracegate"] };
  server.tokens.set("proxy-token", account);
  server.set(gateway);
  await using running = await run(server);
  await until(() => accepted(server.get("Gateway", "apps/web")) === "True", "status of the Gateway");
  const address = `http://127.0.0.1:${running.controller.ports.xds}`;
  const metadata = { NAMESPACE: "apps", GATEWAY: "web", POD_NAME: "web-1" };
  const node = { id: "web-1", cluster: "apps/web", metadata };
  using stranger = new XdsPeer({ address, token: join(folder, "wrong") }, node);
  assert.match(await stranger.end(), /the token is not valid/);

  using proxy = new XdsPeer({ address, token: join(folder, "token") }, node);
  const batch = await proxy.batch();
  proxy.answer(batch, "port 8080 is taken");
  const programmed = (): string =>
    server.get("Gateway", "apps/web")?.status?.conditions?.find(({ type }) => type === "Programmed")?.message ?? "";
  await until(
    () => programmed().includes("Proxy web-1 rejected its configuration: port 8080 is taken"),
    "the condition",
  );
  await until(() => server.store.list("v1/events").length === 1, "the Event");
  const [event] = server.store.list("v1/events")[0]?.slice(1) ?? [];
  assert.deepEqual(typeof event === "object" && [event.type, event.reason, event.message], [
    "Warning",
    "TracegateNackError",
    "Proxy web-1 rejected its configuration and keeps the former one: port 8080 is taken",
  ]);
  const proxies = JSON.parse((await running.get("admin", "/snapshots/proxies")).text) as { pod: string }[];
  assert.deepEqual(
    proxies.map(({ pod }) => pod),
    ["web-1"],
  );
  proxy.answer(batch);
  await until(() => !programmed().includes("rejected"), "the condition ends");
});

test("Gateways of two namespaces share proxies: one state, no foreign hosts, and nothing is left after the last", async (t) => {
  await using server = await TestApiServer.start();
  const folder = mkdtempSync(join(tmpdir(), "tracegate-token-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const account = (name: string, of: string): { readonly token: string } => {
    const token = join(folder, name);
    writeFileSync(token, name);
    server.tokens.set(name, { username: `system:serviceaccount:${of}`, audiences: ["tracegate"] });
    return { token };
  };
  const parametersRef = { group: "tracegate.dev", kind: "TracegateParameters", name: "shared", namespace: "infra" };
  const metadata = { namespace: "infra", name: "shared" };
  server.set({
    apiVersion: GATEWAY_API,
    kind: "GatewayClass",
    metadata: { name: "shared" },
    spec: { controllerName: "tracegate.dev/gateway-controller", parametersRef },
  } as never);
  const parameters = { apiVersion: "tracegate.dev/v1alpha1", kind: "TracegateParameters", metadata };
  server.set({ ...parameters, spec: { mergeGateways: { namespaces: { from: "All" } } } } as never);
  const member = (namespace: string, hostname: string, second: number) =>
    server.set({
      ...gateway,
      metadata: { namespace, name: "web", creationTimestamp: `2026-01-01T00:00:0${second}Z` },
      spec: { gatewayClassName: "shared", listeners: [{ name: "http", port: 8080, protocol: "HTTP", hostname }] },
    } as never);
  member("team-a", "*.a.example.com", 1);
  await using running = await run(server);
  const name = sharedDeploymentName("shared");
  const shared = (kind: "Deployment" | "Service" | "Secret") =>
    server.get(kind, `infra/${name}${kind === "Secret" ? "-session" : ""}`);
  await until(() => shared("Deployment"), "the shared Deployment");
  assert.equal(server.get("Deployment", "team-a/web"), undefined);
  server.set({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadata, name: "shared-1", labels: { "tracegate.dev/owning-gateway-class": "shared" } },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  } as never);
  const service = await until(() => shared("Service"), "the shared Service");
  server.set({ ...service, spec: { ...(service as Service).spec, clusterIP: "10.0.0.9" } } as never);

  const address = `http://127.0.0.1:${running.controller.ports.xds}`;
  const node = {
    id: "shared-1",
    cluster: "GatewayClass/shared",
    metadata: { NAMESPACE: "infra", GATEWAY_CLASS: "shared", POD_NAME: "shared-1" },
  };
  using stranger = new XdsPeer({ address, ...account("stranger", "team-a:web") }, node);
  assert.match(
    await stranger.end(),
    new RegExp(`team-a/web may not read .* of GatewayClass/shared; its proxies run as infra/${name}`),
  );
  for (const namesake of [`team-a:${name}`, "infra:shared"]) {
    using peer = new XdsPeer({ address, ...account("namesake", namesake) }, node);
    assert.match(await peer.end(), / may not read /);
  }
  using proxy = new XdsPeer({ address, ...account("proxy", `infra:${name}`) }, node);
  proxy.answer(await proxy.batch());
  const condition = (namespace: string, type: string) =>
    server.get("Gateway", `${namespace}/web`)?.status?.conditions?.find((each) => each.type === type);
  await until(() => condition("team-a", "Programmed")?.status === "True", "the first is programmed");

  member("team-b", "b.example.com", 2);
  const batch = await proxy.batch();
  await until(
    () => condition("team-b", "Programmed")?.message === "The shared proxies do not serve the Gateway yet",
    "a wait",
  );
  proxy.answer(batch);
  await until(() => condition("team-b", "Programmed")?.status === "True", "the second is programmed");
  assert.deepEqual(server.get("Gateway", "team-b/web")?.status?.addresses, [{ type: "IPAddress", value: "10.0.0.9" }]);
  const listeners = () => [...proxy.known[RESOURCE_TYPE].keys()].filter((name) => name.startsWith("listener/")).sort();
  assert.deepEqual(listeners(), ["listener/team-a/web.http", "listener/team-b/web.http"]);

  // What a proxy says may be about the other's objects.
  member("team-b", "c.example.com", 2);
  const rejected = await proxy.batch();
  proxy.answer(rejected, "port 8080 is taken");
  const text = "Shared proxy shared-1 rejected its configuration; its log says why";
  for (const team of ["team-a", "team-b"])
    await until(() => condition(team, "Programmed")?.message === text, `the rejection at ${team}`);
  const events = () => server.store.list("v1/events").map(([, event]) => event as unknown as RejectionEvent);
  await until(() => events().length === 1, "the Event for those who write the parameters");
  assert.match(events()[0]?.message ?? "", /port 8080 is taken/);
  assert.deepEqual(
    [events()[0]?.involvedObject.kind, events()[0]?.metadata.namespace],
    ["TracegateParameters", "infra"],
  );
  proxy.answer(rejected);
  await until(() => condition("team-a", "Programmed")?.status === "True", "the end of the rejection");

  // A host below that of another Gateway.
  member("team-b", "shop.a.example.com", 2);
  proxy.answer(await proxy.batch());
  await until(() => condition("team-b", "Accepted")?.reason === "ListenersNotValid", "the conflict");
  assert.deepEqual(listeners(), ["listener/team-a/web.http"]);

  for (const namespace of ["team-a", "team-b"]) server.delete("Gateway", `${namespace}/web`);
  await until(
    () => [shared("Deployment"), shared("Service"), shared("Secret")].every((each) => each === undefined),
    "the end",
  );
});

test("Secrets and ConfigMaps are read only when something refers to them, in any order, and until they are deleted", async () => {
  await using server = await TestApiServer.start();
  server.set({ apiVersion: "v1", kind: "Namespace", metadata: { name: "apps" } });
  const file = (name: string): string => readFileSync(`${appRoot}examples/recipes/certs/${name}`, "base64");
  const data = { "tls.crt": file("server.pem"), "tls.key": file("server.key") };
  const secret = (name: string): void =>
    void server.set({ apiVersion: "v1", kind: "Secret", metadata: { namespace: "apps", name }, data } as never);
  for (const name of ["other", "web"]) secret(name);
  server.set({ apiVersion: "v1", kind: "ConfigMap", metadata: { namespace: "apps", name: "big" }, data: {} } as never);
  await using running = await run(server);
  await until(() => running.controller.leading, "leading");
  const reads = (): readonly string[] =>
    server.received
      .filter(({ method, path }) => method === "GET" && /\/(secrets|configmaps)\/./.test(path))
      .map(({ path }) => path);
  const lists = server.received.filter(({ path }) => /\/(secrets|configmaps)$/.test(path));
  // Objects that the controller created itself are read completely.
  const foreign = lists.filter(({ query }) => query.get("labelSelector") !== `${MANAGED_BY}=tracegate`);
  assert.ok(foreign.length > 0);
  assert.deepEqual(
    foreign.filter(({ metadataOnly }) => !metadataOnly).map(({ path }) => path),
    [],
  );
  assert.deepEqual(reads(), []);
  // A reference to an object that is there, and one to an object that is not.
  const listeners = ["web", "late"].map((name, i) => ({
    name,
    port: 8443 + i,
    protocol: "HTTPS",
    tls: { certificateRefs: [{ name }] },
  }));
  server.set({ ...gateway, spec: { ...gateway.spec, listeners } } as never);
  const resolved = (at: number): string | undefined =>
    server.get("Gateway", "apps/web")?.status?.listeners?.[at]?.conditions.find(({ type }) => type === "ResolvedRefs")
      ?.message;
  await until(() => resolved(0) === "All references are resolved", "the certificate");
  assert.match(resolved(1) ?? "", /does not exist/);
  secret("late");
  await until(() => resolved(1) === "All references are resolved", "the certificate that came later");
  server.set({ apiVersion: "v1", kind: "Secret", metadata: { namespace: "apps", name: "late" }, data: {} } as never);
  await until(() => /the former certificate stays in use/.test(resolved(1) ?? ""), "the change");
  server.delete("Secret", "apps/web");
  await until(() => /does not exist/.test(resolved(0) ?? ""), "the deletion");
  assert.deepEqual(
    reads().filter((path) => /other|big/.test(path)),
    [],
  );
});

test("no state is published while a Secret that it needs is being fetched", async () => {
  await using server = await TestApiServer.start();
  const file = (name: string): string => readFileSync(`${appRoot}examples/recipes/certs/${name}`, "base64");
  const data = { "tls.crt": file("server.pem"), "tls.key": file("server.key") };
  server.set({ apiVersion: "v1", kind: "Secret", metadata: { namespace: "apps", name: "web" }, data } as never);
  const tls = { certificateRefs: [{ name: "web" }] };
  const listeners = [{ name: "https", port: 8443, protocol: "HTTPS", tls }];
  server.set({ ...gateway, spec: { ...gateway.spec, listeners } } as never);
  server.set({
    apiVersion: GATEWAY_API,
    kind: "GatewayClass",
    metadata: { name: "tracegate" },
    spec: { controllerName: "tracegate.dev/gateway-controller" },
  } as never);
  const held = Promise.withResolvers<void>();
  let asked = false;
  server.intercept = ({ path }) => {
    if (!path.endsWith("/secrets/web")) return;
    asked = true;
    return held.promise;
  };
  await using running = await run(server);
  const published = async (): Promise<readonly string[] | undefined> => {
    const { text } = await running.get("admin", "/snapshots/gateways");
    return (JSON.parse(text) as { gateways: Record<string, { resources: string[] }> }).gateways["apps/web"]?.resources;
  };
  await until(() => asked, "the request for the Secret");
  assert.equal(await published(), undefined);
  held.resolve();
  await until(async () => (await published())?.includes("listener/apps/web.https") === true, "the state");
});

test("a restricted controller reads its namespaces only, and leaves Gateways elsewhere alone", async () => {
  await using server = await TestApiServer.start();
  const named = (namespace: string, name: string, labels = {}) =>
    ({ ...gateway, metadata: { namespace, name, labels } }) as never;
  server.set(named("apps", "web", { team: "a" }));
  server.set(named("apps", "unlabelled"));
  server.set(named("other", "web", { team: "a" }));
  server.set(named("more", "web", { team: "a" }));
  const env = { TRACEGATE_WATCH_NAMESPACES: "apps, more", TRACEGATE_WATCH_GATEWAY_SELECTOR: "team=a" };
  await using running = await run(server, "one", "plaintext", env);
  for (const key of ["apps/web", "more/web"])
    await until(() => accepted(server.get("Gateway", key)) === "True", `status of ${key}`);
  await until(() => server.get("Deployment", "more/web") !== undefined, "the Deployment");
  for (const key of ["other/web", "apps/unlabelled"]) {
    assert.equal(accepted(server.get("Gateway", key)), undefined);
    assert.equal(server.get("Deployment", key), undefined);
  }
  const namespaces = new Set(server.received.map(({ path }) => /\/namespaces\/([^/]+)\//.exec(path)?.[1]));
  namespaces.delete(undefined);
  assert.deepEqual([...namespaces].sort(), ["apps", "more", "tracegate-system"]);
  const wide = server.received.map(({ path }) => path).filter((path) => !path.includes("/namespaces/"));
  assert.deepEqual([...new Set(wide.map((path) => path.split("/").slice(-1)[0]))].sort(), [
    "customresourcedefinitions",
    "gatewayclasses",
    "namespaces",
    "nodes",
    "status",
  ]);
  // All objects of one namespace are gone; those of the other stay.
  server.delete("Gateway", "apps/web");
  server.compact();
  server.endWatches("cut");
  const shown = async (): Promise<string> => (await running.get("admin", "/snapshots/gateways")).text;
  await until(async () => !(await shown()).includes("apps/web.http"), "the end of one");
  assert.match(await shown(), /more\/web\.http/);
});

test("the GatewayClass says whether the installed version of the Gateway API is supported, and follows its CRDs", async () => {
  await using server = await TestApiServer.start();
  const crd = (name: string, version?: string): void => {
    const annotations = version === undefined ? {} : { "gateway.networking.k8s.io/bundle-version": version };
    server.set({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name, annotations },
    });
  };
  crd("gateways.gateway.networking.k8s.io", "v1.6.3");
  crd("xmeshes.gateway.networking.x-k8s.io", "v1.6.0");
  crd("tracegatepolicies.tracegate.dev");
  await using _running = await run(server);
  const conditions = () =>
    (server.get("GatewayClass", "tracegate") as GatewayClass | undefined)?.status?.conditions ?? [];
  const supported = () => conditions().find(({ type }) => type === "SupportedVersion");
  const isSupported = (status: string) => until(() => supported()?.status === status, `SupportedVersion ${status}`);
  await isSupported("True");
  assert.equal(supported()?.message, "The CRDs of the Gateway API have version v1.6.0, v1.6.3");
  crd("httproutes.gateway.networking.k8s.io", "v1.4.1");
  await isSupported("False");
  assert.equal(supported()?.reason, "UnsupportedVersion");
  assert.match(
    supported()?.message ?? "",
    /supports v1\.6 .*Found v1\.4\.1: httproutes\.gateway\.networking\.k8s\.io$/,
  );
  // The controller still serves the Gateways.
  assert.equal(conditions().find(({ type }) => type === "Accepted")?.status, "True");
  crd("httproutes.gateway.networking.k8s.io", "v1.6.3");
  await isSupported("True");
  crd("httproutes.gateway.networking.k8s.io");
  await isSupported("False");
  assert.match(supported()?.message ?? "", /Found no version \(annotation .*\): httproutes/);
  server.delete("CustomResourceDefinition", "httproutes.gateway.networking.k8s.io");
  await isSupported("True");
  const asked = server.received.filter(({ path }) => path.endsWith("/customresourcedefinitions"));
  assert.ok(asked.length > 0 && asked.every(({ metadataOnly }) => metadataOnly));
});
